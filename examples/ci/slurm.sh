#!/bin/bash
#SBATCH --job-name=cuda-on-cpu
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=32
#SBATCH --mem=64G
#SBATCH --time=01:00:00
# A CUDA program on a node without GPUs. CUDAway runs kernels on the cores that the job has.
set -euo pipefail
cudaway=/shared/apps/cudaway/bin/cudaway

export CUDAWAY_DEVICE=cpu
# A little less than the job has, so that the host side has room too.
export CUDAWAY_CPU_MEMORY_MB=$((SLURM_MEM_PER_NODE * 3 / 4))
# What `cudaway compile` filled once for all nodes; it belongs to root or to you.
export CUDAWAY_CACHE_PATH=/shared/apps/cudaway/cache

"$cudaway" doctor || true
srun "$cudaway" run -- ./simulation --steps 1000
