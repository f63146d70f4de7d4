package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
static int version(const char *name) {
	void *library = dlopen(name, RTLD_NOW);
	int (*ask)(int *) = library ? dlsym(library, "cuDriverGetVersion") : 0, number = 0;
	return ask && !ask(&number) ? number : 0;
}
*/
import "C"
import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	if os.Args[1] == "dlopen" {
		number := C.version(C.CString(os.Args[2]))
		if number > 1 {
			fmt.Println("ours")
		} else if number == 1 {
			fmt.Println("theirs")
		} else {
			fmt.Println("none")
		}
		return
	}
	child := exec.Command(os.Args[2], os.Args[3:]...)
	if os.Args[1] == "environ" {
		child.Env = os.Environ()
	} else if os.Args[1] == "cleared" {
		child.Env = []string{"PATH=/usr/bin"}
	}
	child.Stdout = os.Stdout
	child.Run()
}
