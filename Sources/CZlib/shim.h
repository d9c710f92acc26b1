#ifndef WATCHWORD_CZLIB_SHIM_H
#define WATCHWORD_CZLIB_SHIM_H

#include <zlib.h>

#endif
