#ifndef WATCHWORD_CSECRET_SHIM_H
#define WATCHWORD_CSECRET_SHIM_H

#include <libsecret/secret.h>

#endif
