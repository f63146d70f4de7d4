#include <stdio.h>
int cudnnCreate(void);
int main(void) { printf("%d", cudnnCreate()); return 0; }
