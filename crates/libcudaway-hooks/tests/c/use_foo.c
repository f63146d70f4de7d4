#include <stdio.h>
int foo(int);
int main(void) { printf("%d", foo(1)); return 0; }
