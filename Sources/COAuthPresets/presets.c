#include "COAuthPresets.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char presets[] = {
#embed "../../contrib/oauth-presets.toml"
};

const unsigned char *watchword_oauth_presets(size_t *length) {
    *length = sizeof presets;
    return presets;
}
