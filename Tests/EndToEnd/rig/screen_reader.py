"""What a screen reader is told (AT-SPI). As a program: for each line that it reads it prints what is on the desktop, as JSON."""
import json
import sys


def main():
    import gi
    gi.require_version("Atspi", "2.0")
    from gi.repository import Atspi, GLib

    Atspi.init()

    def describe(node, window, found):
        # Every look is a message to the program and back: only what tests ask about.
        try:
            role = node.get_role_name()
            if role in ("panel", "filler", "scroll bar", "image"):
                return inside(node, window, found) if role in ("panel", "filler") else None
            states = node.get_state_set()
            found.append({
                "window": window, "role": role, "name": node.get_name() or "",
                "sensitive": states.contains(Atspi.StateType.SENSITIVE), "focused": states.contains(Atspi.StateType.FOCUSED),
                "focusable": states.contains(Atspi.StateType.FOCUSABLE), "pressed": states.contains(Atspi.StateType.PRESSED)})
            if role not in ("label", "push button", "text", "password text", "page tab"):
                inside(node, window, found)
        except GLib.Error:
            pass  # it has gone meanwhile

    def inside(node, window, found):
        for index in range(node.get_child_count()):
            child = node.get_child_at_index(index)
            if child:
                describe(child, window, found)

    for _ in sys.stdin:
        found = []
        desktop = Atspi.get_desktop(0)
        desktop.clear_cache()
        for number in range(desktop.get_child_count()):
            application = desktop.get_child_at_index(number)
            if not application or application.get_name() not in ("watchword-agent", "zenity"):
                continue
            application.clear_cache()
            for index in range(application.get_child_count()):
                window = application.get_child_at_index(index)
                if window:
                    describe(window, window.get_name() or "", found)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
