#include "use.h"
__attribute__((visibility("default"))) void plugin_use(void) { use_runtime(); }
