#ifndef WATCHWORD_CCURL_SHIM_H
#define WATCHWORD_CCURL_SHIM_H

#include <curl/curl.h>

#endif
