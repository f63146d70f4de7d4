package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if os.Args[1] == "self" {
		maps, _ := os.ReadFile("/proc/self/maps")
		if strings.Contains(string(maps), "libcuda.so") {
			fmt.Println("ours")
		} else {
			fmt.Println("none")
		}
		return
	}
	child := exec.Command(os.Args[2], os.Args[3:]...)
	child.Stdout = os.Stdout
	child.Run()
}
