// Loops over the grid, whose blocks go through them in rounds, for tests/differential.rs. The PTX beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O3 -fno-unroll-loops -S -o rounds.ptx rounds.cu
#include "device.h"
#define OWN ((int)(BX*DX+TX))
#define STEP ((int)(GX*DX))
#define MIX(l) v=v*(31+l)+(v>>3)+((sum^l)|(v<<l));
extern "C" {
// What most programs have.
__global__ void grid_map(const int*x,int*y,int n){ for(int i=OWN;i<n;i+=STEP)y[i]=x[i]*3+i; }
// By 64-bit numbers.
__global__ void grid_long(const int*x,int*y,int n){ for(long i=OWN;i<n;i+=STEP)y[i]=x[i]*3+(int)i; }
// By pointers.
__global__ void grid_pointers(const int*x,int*y,int n){ const int*end=x+n; int*to=y+OWN; for(x+=OWN;x<end;x+=STEP){ *to=*x^5; to+=STEP; } }
// A sum that is handed on, and what is made of it behind the loop by a tree.
__global__ void grid_sum(const int*x,int*y,int n){ __shared__ int s[1024]; int sum=7,last=-1; for(int i=OWN;i<n;i+=STEP){ sum=sum*31+x[i]; y[i]=sum; last=i; }
 s[TX]=sum^last; SYNC; for(unsigned k=DX/2;k>0;k/=2){ if(TX<k)s[TX]=s[TX]*3+s[TX+k]; SYNC; } if(OWN<n)y[OWN]+=s[0]+last; }
// Counted in shared memory, whose bins are cleared before and added behind the loop.
__global__ void grid_bins(const int*x,int*y,int n){ __shared__ int s[64]; for(int k=TX;k<64;k+=DX)s[k]=0; SYNC;
 for(int i=OWN;i<n;i+=STEP)__nvvm_atom_add_gen_i(&s[x[i]&63],i&15); SYNC; for(int k=TX;k<64&&k<n;k+=DX)__nvvm_atom_add_gen_i(&y[k],s[k]); }
// Nobody asks before the first time.
__global__ void grid_at_least_once(const int*x,int*y,int n){ int i=OWN; int len=GX*DX; if(n<len)n=len; do{ y[i]=x[i]+1; i+=STEP; }while(i<n-len); }
// Threads that ended before, and others that skip the loop for a reason of their own.
__global__ void grid_some(const int*x,int*y,int n){ int own=x[OWN]; if(own%11==3)return; int sum=0; if(own%5!=1) for(int i=OWN;i<n;i+=STEP){ sum+=x[i]; y[i]=sum; } y[OWN]=sum+own; }
// Loops and branches inside, and one way out more.
__global__ void grid_inside(const int*x,int*y,int n){ for(int i=OWN;i<n;i+=STEP){ int v=x[i]; if(v&1){ for(int k=0;k<(v&7);k++)v=v*3+k; } else if(v%3==0)v/=7; y[i]=v; } }
__global__ void grid_breaks(const int*x,int*y,int n){ int at=-1; for(int i=OWN;i<n;i+=STEP){ y[i]=x[i]+2; if(x[i]%17==5){ at=i; break; } } if(OWN<n)y[OWN]^=at; }
// Two of them, and one in a loop that all go round.
__global__ void grid_twice(const int*x,int*y,int n){ for(int i=OWN;i<n;i+=STEP)y[i]=x[i]+1; for(int i=OWN;i<n;i+=STEP)y[i]=y[i]*5-x[i]; }
__global__ void grid_again(const int*x,int*y,int n){ for(int k=0;k<3;k++)for(int i=OWN;i<n;i+=STEP)y[i]=y[i]*5-x[i]+k; }
// Each row of a picture of 37 words by the threads of a row of the block.
__global__ void grid_rows(const int*x,int*y,int n){ int rows=n/37,sum=0; for(int row=BY*DY+TY;row<rows;row+=GY*DY)for(int i=OWN;i<37;i+=STEP){ sum+=x[row*37+i]; y[row*37+i]=sum; } }
// Columns, a row further in each trip: of any length, of a length that is written out, and with sums for each thread in long trips.
__global__ void rows_map(const int*x,int*y,int n){ int i=OWN,rows=n/STEP; for(int k=0;k<rows;k++)y[k*STEP+i]=x[k*STEP+i]*3+k; }
__global__ void rows_written(const int*x,int*y,int n){ int i=OWN; if(i>=600)return; for(int k=i&3;k<n/600;k++)y[k*600+i]=x[k*600+i]^k; }
__global__ void rows_long(const int*x,int*y,int n){ int i=OWN,sum=5; if(i%7==4)return; for(int k=0;k<n/STEP;k++){ int v=x[k*STEP+i]; MIX(1)MIX(2)MIX(3)MIX(4)MIX(5)MIX(6)MIX(7)MIX(8) sum+=v; y[k*STEP+i]=sum; } y[i]=sum; }
}
