"""The windows: GTK 4 and libadwaita."""
