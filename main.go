// Command monopod runs Kubernetes static pods on one machine.
package main

func main() {}
