#include "use.h"
int main(void) { use_runtime(); return 0; }
