"""How the vendored toolchain is made. Standard library only: it runs inside build environments that hold nothing else."""
