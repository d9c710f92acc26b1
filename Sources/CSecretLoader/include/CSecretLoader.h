#ifndef WATCHWORD_CSECRETLOADER_H
#define WATCHWORD_CSECRETLOADER_H

/// Loads libsecret, and with it GIO, GObject and GLib, unless they are loaded already. None of their functions may be called
/// before this has succeeded. Any thread may call this.
///
/// The environment must be cleaned before the call: GLib's constructors read it.
/// @return NULL, or an error message, which is valid until the thread uses the dynamic linker again.
const char *watchword_load_secret(void);

#endif
