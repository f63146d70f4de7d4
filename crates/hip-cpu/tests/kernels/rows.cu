// Kernels whose groups are several rows of a block, or of a matrix fragment, and threads with neighbouring accesses, for
// tests/differential.rs. The PTX beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O3 -S -o rows.ptx rows.cu
#include "device.h"
#define OWN ((int)(BX*DX*DY+TY*DX+TX))
extern "C" {
// A row's index is widened where it may wrap, and what comes of it is data. Threads of one row read one word.
__global__ void rows_wrap(const int*x,int*y,unsigned off,int n){ unsigned i=off+TY*37+TX; long s=(int)i; unsigned long u=i; int own=OWN;
 if(own<n) y[own]=(int)(s>>3)+(int)(u>>7)+x[TY]+x[TY*5+TX]; }
// The same index is kept across barriers and goes on; threads end before, and leave a loop one after the other.
__global__ void rows_kept(const int*x,int*y,unsigned off,int n){ __shared__ int t[256]; int own=OWN,id=TY*DX+TX; if(own>=n) return;
 unsigned i=off+TY*37+TX; long a=(int)i; int sum=0;
 _Pragma("unroll 1") for(int k=0;k<3;k++){ t[id]=x[TY*5+TX]+k; SYNC; sum+=t[id]*(int)(a>>3); for(int j=0;j<(x[TX]&3);j++) sum=sum*5+t[TY*DX]; SYNC; a+=k*8+5; }
 y[own]=sum+(int)(a>>7); }
// A tile in shared memory, read by rows and by columns, written back by columns.
__global__ void rows_tile(const float*x,float*y,int n){ __shared__ float a[32*33],b[32*33]; float sum=0,last=0; int d=DX<DY?DX:DY;
 for(int s=0;s<3;s++){ a[TY*33+TX]=x[(OWN+s*7)%n]; b[TX*33+TY]=x[(OWN+s*5)%n]; SYNC;
  for(int k=0;k<d;k++){ sum+=a[TY*33+k]*b[k*33+TX%d]; last=a[TY*33+TX]; } SYNC; }
 y[OWN]=sum+last; }
// What lane / 4 and lane % 4 say, in padded rows.
__global__ void rows_fragment(const int*x,int*y,int n){ __shared__ int a[64*12]; int t=TX, lane=t%32, group=lane/4, pair=lane%4, warp=t/32;
 for(int i=t;i<64*8;i+=DX) a[(i/8)*12+i%8]=x[i%n]; SYNC; int r=(warp%2)*32+group; int v=a[r*12+pair]+3*a[(r+8)*12+pair+4];
 SYNC; if(v&1) a[r*12+pair]=v; SYNC; y[BX*DX+t]=a[r*12+pair]+v*a[((r+5)%64)*12+pair+4]; }
// Structures: whole, with gaps, with a store between, stored whole and in part.
struct three { int a,b,c; }; struct four { int a,b,c,d; };
__global__ void rows_structs(const int*x,int*y,int n){ int i=OWN; if(i*4+3>=n) return; const three*t=(const three*)x; const four*f=(const four*)x; four*o=(four*)y;
 int a=t[i].a,b=t[i].b,c=t[i].c; int d=f[i].a+f[i].c, e=f[i].b; o[i].a=a+d; int g=f[i].d; o[i].b=b^e; o[i].c=c*3+g; o[i].d=f[i].d-a; }
// Elements of a structure that each thread finds elsewhere.
__global__ void rows_found(const int*x,int*y,int n){ int i=OWN; if(i>=n/4) return; int at=(x[i]&0x7fffffff)%(n/4); int*o=y+4*i; const int*f=x+4*at; o[0]=f[0]+f[1]; o[1]=f[1]^f[2]; o[2]=f[3]; o[3]=f[2]+f[3]; }
}
