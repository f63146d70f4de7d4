// Lanes that part, on sides that are too long to be done by all, and come together again, for tests/differential.rs. The PTX beside it is
// made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O1 -fno-unroll-loops -S -o parts.ptx parts.cu
#include "device.h"
#define FULL 0xffffffffu
#define OWN ((int)(BX*DX+TX))
// Through the thread's own word of memory, which no other thread touches.
#define SIDE(a) { y[TX]=v+(a); v=v*3+z[TX]; z[TX]=v^(a); v+=y[TX]>>1; }
#define BEGIN y+=BX*DX; z+=BX*DX; int v=x[OWN%n],w; y[TX]=0; z[TX]=v;
#define WORD(k) w=x[(OWN+(k)*37)%n];
extern "C" {
// In odd trips all lanes take the outer branch and part at the inner one; in even trips some take it, and all of those one way.
__global__ void parts_again(const int*x,int*y,int*z,int n){ BEGIN for(int k=0;k<9;k++){ WORD(k)
  if(k&1||((w&12)&&!(w&1))){ SIDE(k) if(w&1) SIDE(5) else SIDE(9) SIDE(w) } else { SIDE(1) SIDE(k*w) } v+=k; } y[TX]=v; }
// Loops that each lane leaves in a trip of its own, by its condition or by its break, with branches in them.
__global__ void parts_loops(const int*x,int*y,int*z,int n){ BEGIN for(int k=0;k<4;k++){ WORD(k)
  for(int j=0;j<(w&7);j++){ if((v^j)&1) SIDE(j) else { SIDE(w) SIDE(3) } if((v&31)==7)break; SIDE(j*j) }
  for(int j=0;j<3;j++){ WORD(j+k) while(w&3){ SIDE(w) w=(w*5+1)>>1; } SIDE(j) } v^=k; } y[TX]=v; }
// The same with what only whole warps do behind each of them.
__global__ void parts_wide(const int*x,int*y,int*z,int n){ BEGIN for(int k=0;k<5;k++){ WORD(k)
  if(w&1){ SIDE(k) if(w&2) SIDE(7) else SIDE(w) } v+=__nvvm_shfl_sync_idx_i32(FULL,v,(TX+k)&31,31);
  for(int j=0;j<(w&3);j++){ SIDE(j) if(w&4) SIDE(2) } v^=__nvvm_vote_ballot_sync(FULL,v&1); } y[TX]=v; }
// A barrier in each trip, in front of which some lanes have gone one way and some another.
__global__ void parts_barriers(const int*x,int*y,int*z,int n){ __shared__ int s[1024]; BEGIN for(int k=0;k<5;k++){ WORD(k)
  if(w&1) SIDE(k) else if(w&2){ SIDE(w) SIDE(4) } s[TX]=v; SYNC; v+=s[(TX+k*7)%DX]; if((v&6)==2) SIDE(v) SYNC; } y[TX]=v; }
// Some lanes end, in the second trip or behind the loop, after others have met.
__global__ void parts_ends(const int*x,int*y,int*z,int n){ BEGIN for(int k=0;k<4;k++){ WORD(k)
  if(w&1) SIDE(k) else SIDE(3) if(k==2&&(w&24)==8) return; if(w&4){ SIDE(w) SIDE(k) } } if(v&1) return; SIDE(v) y[TX]=v; }
// What the lanes bring is a line from all sides, or from one alone.
__global__ void parts_lines(const int*x,int*y,int*z,int n){ BEGIN int at=TX,to=TX; for(int k=0;k<4;k++){ WORD(k)
  if(w&1){ SIDE(at) at=TX+k; to=TX+1; } else { SIDE(to) at=TX+k; to=k; } v+=x[at%n]+x[to%n]; } y[TX]=v; }
// Sides beside each other, each with a place of its own to meet, of a branch that a whole block takes.
__global__ void parts_beside(const int*x,int*y,int*z,int n){ BEGIN for(int k=0;k<6;k++){ WORD(k)
  if((n+k)%3){ if(w&1) SIDE(k) else SIDE(6) SIDE(1) if(w&2){ SIDE(w) } } else { if(w&4) SIDE(k) else { SIDE(w) if(w&8) SIDE(2) } SIDE(8) } if(w&16) SIDE(9) } y[TX]=v; }
}
