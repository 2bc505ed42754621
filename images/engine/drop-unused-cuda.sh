#!/bin/sh
# Remove from the CPU variant the CUDA files that nothing loads without a GPU: about 0.9 GB.
#
# PyTorch's wheel is linked against CUDA, so `import torch` needs what libtorch_cuda.so names as NEEDED; that stays.
# What goes: cuDNN's engines, cuSOLVER, profilers, headers and static libraries, all of them loaded only by a first
# call on a GPU. (Triton, which has no CPU backend here and which vLLM therefore disables, is not installed at all.)
set -eu
cd /opt/venv/lib/python3*/site-packages/nvidia
rm -rf cu13/bin cu13/nvvm ./*/include
rm -f cudnn/lib/libcudnn_* cu13/lib/libcusolver* cu13/lib/libnvrtc*.alt* cu13/lib/libnvperf* cu13/lib/libcheckpoint*
find . \( -name '*.a' -o -name '*.bc' \) -delete
find nvshmem/lib -type f ! -name 'libnvshmem_host*' -delete
