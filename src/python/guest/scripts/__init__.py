"""Scripts that stand alone: the interpreter, or another process, runs each as it is."""
