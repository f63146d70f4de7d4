// Kernels whose warps wait for each other, for tests/differential.rs: settings L and P. The PTX beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O3 -S -o waits.ptx waits.cu
#include "device.h"
#define LANE (TX&31)
#define WARP (TX>>5)
#define WARPS ((DX+31)>>5)
#define SYNCWARP __nvvm_bar_warp_sync(0xffffffff)
extern "C" {
__device__ void __nvvm_bar_warp_sync(unsigned);
// Warps take turns, last one first, five rounds; each lane's loop has its own length.
__global__ void turns(const int*x,int*out,int n){ __shared__ volatile int turn; __shared__ int sum[32]; int i=BX*DX+TX; if(TX==0) turn=0; if(TX<32) sum[TX]=0; SYNC;
 int acc=x[i]; for(int r=0;r<5;r++){ int mine=r*WARPS+(WARPS-1-WARP); while(turn!=mine){} __nvvm_membar_cta();
  for(int k=0;k<(x[i]&7);k++) acc=acc*5+sum[(k+LANE)&31]; SYNCWARP; sum[LANE]+=acc; SYNCWARP; __nvvm_membar_cta(); if(LANE==0) turn=mine+1; SYNCWARP; } out[i]=acc; }
// One thread per block waits for the block before; threads beyond n have left before.
__device__ volatile int chain; __device__ int carried;
__global__ void blocks(const int*x,int*out,int n){ __shared__ int start; int i=BX*DX+TX; if(TX>=DX-3&&TX!=0) return; if(TX==0){ while(chain!=BX){} __nvvm_membar_gl(); start=carried; } SYNC; int v=start; for(int k=0;k<=(x[i]%5);k++) v=v*3+k; out[i]=v; SYNC;
 if(TX==0){ carried=v; __nvvm_membar_gl(); chain= BX+1==GX? 0: BX+1; } }
// Odd lanes wait for what another warp does; even lanes have nothing to do until the warp meets.
__global__ void half_waits(const int*x,int*out,int n){ __shared__ volatile int flag[32]; __shared__ int data[1024]; int i=BX*DX+TX; if(TX<32) flag[TX]=0; SYNC; data[TX]=x[i]+WARP; SYNCWARP; __nvvm_membar_cta(); if(LANE==0) flag[WARP]=1;
 int from=(WARP+1)%WARPS; if(LANE&1){ while(!flag[from]){} __nvvm_membar_cta(); } SYNCWARP; int at=from*32+LANE; out[i]= (LANE&1)&&at<DX? data[at]*2: x[i]; }
// Each lane waits for its own flag; flags come in an order of their own.
__global__ void own_flags(const int*x,int*out,int n){ __shared__ volatile int flag[1024]; int i=BX*DX+TX; flag[TX]= WARP==0? x[i]+1: 0; SYNC; int v=x[i]; if(WARP>0){ int seen; while((seen=flag[TX-32])==0){} v=v*7+seen; SYNCWARP; for(int k=0;k<32;k++) if(((k*11+5)&31)==LANE) flag[TX]=v|1; } SYNCWARP; out[i]=v; }
// A lock that one lane takes for its warp, with a loop inside that waits for a neighbour who may need no lock.
__global__ void guarded(const int*x,int*out,int n){ __shared__ int lock; __shared__ volatile int count; __shared__ int sums[32]; int i=BX*DX+TX; if(TX==0){ lock=0; count=0; } SYNC; int v=0; for(int r=0;r<3;r++){ SYNCWARP; if(LANE==0){ while(__nvvm_atom_cas_gen_i(&lock,0,1)!=0){} __nvvm_membar_cta(); count=count+1; __nvvm_membar_cta(); __nvvm_atom_xchg_gen_i(&lock,0); } SYNCWARP; v+=x[i]*(r+1); } SYNC; out[i]=v+count*1000; }
// Index lines that may wrap, used on both sides of a loop that waits; n is where the data ends.
__global__ void lines(const int*x,int*out,int n){ __shared__ volatile int turn; int i=BX*DX+TX; if(TX==0) turn=0; SYNC; int acc=0; int trips=(n+DX*GX-1)/(DX*GX); for(int t=0;t<trips;t++){ int j=i+t*DX*GX; if(j<n) acc+=x[j];
  int mine=t*WARPS+WARP; while(turn<mine){} SYNCWARP; if(LANE==0) turn=mine+1; SYNCWARP; if(j<n) out[j]=acc^x[n-1-j]; } }
// Each thread looks back over the blocks before, sum by sum, and says what it found at once; lanes of a warp leave in their own trips, and those that stay vote.
__global__ void look_back(const int*x,int*out,int n){ int i=BX*DX+TX; volatile int*told=out+DX*GX; int own=x[i]&1023, sum=own; told[i]=own|1<<30; SYNC; int all=-1;
 for(int b=BX-1;b>=0;b--){ int v; do { __nvvm_membar_cta(); v=told[b*DX+TX]; } while(v==0); sum+=v&((1<<30)-1); all=__nvvm_vote_ballot_sync(all,v>=0); if(v<0) break; }
 told[i]=sum|1<<31; if(sum&1) out[2*DX*GX+(TX&3)]=5; SYNC; out[i]=sum; }
// Every thread takes one of five locks.
__global__ void own_locks(const int*x,int*out,int n){ __shared__ int lock[5]; __shared__ volatile int count[5]; int i=BX*DX+TX; if(TX<5){ lock[TX]=0; count[TX]=0; } SYNC;
 int k=x[i]%5; while(__nvvm_atom_cas_gen_i(&lock[k],0,1)!=0){} __nvvm_membar_cta(); count[k]=count[k]+x[i]; __nvvm_membar_cta(); __nvvm_atom_xchg_gen_i(&lock[k],0); SYNC; out[i]=count[TX%5]; }
// Lanes leave a loop one by one, in which those that stay vote and read from the first of them.
__global__ void parts(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i], acc=0, all=-1; for(int k=0;k<9;k++){ all=__nvvm_vote_ballot_sync(all,v%3!=0); if(v%3==0) break; acc=acc*3+all; v=v/3+(__nvvm_shfl_sync_idx_i32(all,v,__builtin_ctz(all),31)&7); } out[i]=acc^v; }
}
