// Stands in for NVIDIA's driver, which the machine of the test has.
int cuDriverGetVersion(int *version) { *version = 1; return 0; }
