// Trees of barriers in shared memory, whose steps leave more and more of a block's groups idle, for tests/differential.rs. The PTX
// beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O3 -fno-unroll-loops -S -o trees.ptx trees.cu
#include "device.h"
#define ID (TY*DX+TX)
#define SIZE (DX*DY)
#define OWN ((int)(BX*SIZE+ID))
extern "C" {
// Threads below a bound that is halved add what lies above it.
__global__ void tree_halves(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID; s[id]=OWN<n?x[OWN]:0; SYNC;
 for(unsigned k=SIZE/2;k>0;k/=2){ if(id<k)s[id]=s[id]*3+s[id+k]; SYNC; } if(OWN<n)y[OWN]=s[id]; }
// Each thread keeps its own sum in a register, which those that take part in a step change.
__global__ void tree_register(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID; int own=OWN<n?x[OWN]:0; s[id]=own; SYNC;
 for(unsigned k=SIZE/2;k>0;k/=2){ if(id<k){own=own*5+s[id+k]; s[id]=own;} SYNC; } if(OWN<n)y[OWN]=own; }
// Two registers, of which the idle threads' change as well.
__global__ void tree_others(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID; int own=OWN<n?x[OWN]:0,idle=7; s[id]=own; SYNC;
 for(unsigned k=SIZE/2;k>0;k/=2){ if(id<k){own=own*5+s[id+k]; s[id]=own;} else idle=idle*3+own; SYNC; } if(OWN<n)y[OWN]=own+idle; }
// Neighbours first: the threads of each step are strewn over all groups.
__global__ void tree_strewn(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID,size=SIZE; s[id]=OWN<n?x[OWN]:0; SYNC;
 for(unsigned k=1;k<size;k*=2){ if(id%(2*k)==0&&id+k<size)s[id]=s[id]*3+s[id+k]; SYNC; } if(OWN<n)y[OWN]=s[id]; }
// The same with the steps' threads side by side.
__global__ void tree_gathered(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID,size=SIZE; s[id]=OWN<n?x[OWN]:0; SYNC;
 for(unsigned k=1;k<size;k*=2){ unsigned at=2*k*id; if(at+k<size)s[at]=s[at]*3+s[at+k]; SYNC; } if(OWN<n)y[OWN]=s[id]; }
// A scan up and down again; the last threads and the first have nothing to do.
__global__ void tree_scan(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID,size=SIZE; s[id]=OWN<n?x[OWN]:0; SYNC;
 for(unsigned k=1;k<size;k*=2){ int v=0; if(id>=k)v=s[id-k]; SYNC; if(id>=k)s[id]+=v; SYNC; } if(OWN<n)y[OWN]=s[id]; }
// Steps by a part of the block's threads only, then one by the others, with a bound that the loop leaves early.
__global__ void tree_parts(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID; s[id]=OWN<n?x[OWN]:0; SYNC;
 for(unsigned k=SIZE/2;k>8;k/=2){ if(id<k)s[id]^=s[id+k]*7; SYNC; if(k==32&&n==3)break; }
 int v=0; if(id>=24)v=s[id-24]; SYNC; if(id>=24)s[id]+=v; SYNC; if(id==17)s[0]+=s[17]; SYNC; if(OWN<n)y[OWN]=s[id]+s[0]; }
// Floating-point maxima with their places, two arrays at once.
__global__ void tree_places(const float*x,int*y,int n){ __shared__ float s[1024]; __shared__ int at[1024]; unsigned id=ID; s[id]=OWN<n?x[OWN]:-100.f; at[id]=id; SYNC;
 for(unsigned k=SIZE/2;k>0;k/=2){ if(id<k&&s[id+k]>s[id]){s[id]=s[id+k];at[id]=at[id+k];} SYNC; } if(OWN<n)y[OWN]=at[id]; }
// Threads that have ended do not come to the barriers.
__global__ void tree_ended(const int*x,int*y,int n){ __shared__ int s[1024]; unsigned id=ID; s[id]=1; if(OWN>=n)return; s[id]=x[OWN]; SYNC;
 for(unsigned k=SIZE/2;k>0;k/=2){ if(id<k&&OWN+(int)k<n)s[id]+=s[id+k]; SYNC; } y[OWN]=s[id]; }
}
