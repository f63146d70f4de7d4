// Threads that share structures of sizes that are no power of two, for tests/differential.rs: each reads a part of one, in loops that
// lanes leave in trips of their own. The PTX beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O1 -fno-unroll-loops -S -o structs.ptx structs.cu
#include "device.h"
typedef unsigned short u16;
typedef unsigned char u8;
struct Q { u16 d; u16 q[8]; };                   // 18 bytes
struct V { unsigned s; int q[8]; };              // 36 bytes
struct K { unsigned d; u16 k[6]; unsigned q[4]; };  // 32 bytes, of which scales are read by one side or the other
__device__ static int dot(int a, int b, int c) { int r; asm("dp4a.s32.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ static int udot(int a, int b, int c) { int r; asm("dp4a.u32.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
__device__ static int uudot(int a, int b, int c) { int r; asm("dp4a.u32.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
#define OWN ((int)(BX*DX+TX))
#define WORD(p,k) ((p)[2*(k)]|(p)[2*(k)+1]<<16)
// Two threads for a structure: its halves, one word and what all of it has.
#define TRIP(i) { int f=TX%2*2; const struct Q*b=(const struct Q*)x+(i); const struct V*w=(const struct V*)x+(i)/2; \
  for(int k=f;k<f+2;k++){ int a=WORD(b->q,k); v=dot(a&0x0f0f0f0f,w->q[k],v); v=dot(a>>4&0x0f0f0f0f,w->q[k+4],v); v=dot(a,w->q[k],v); v=udot(a,w->s,v); v=uudot(w->s,a,v); } v+=b->d*3+w->s; }
extern "C" {
// As many trips as there are structures; the last is some threads' alone.
__global__ void structs_turns(const int*x,int*y,int*z,int n){ int v=OWN,m=n*4/18; for(int i=TX/2;i<m;i+=DX/2) TRIP(i) y[OWN]=v; }
// The same words, packed by one instruction, and written apart: a thread's eight bytes of sixteen.
__global__ void structs_packed(const int*x,int*y,int*z,int n){ int v=OWN,m=n*4/18; for(int i=TX/2;i<m;i+=DX/2){ const u16*q=((const struct Q*)x+i)->q+TX%2*4; int a,b;
  asm("mov.b32 %0,{%1,%2};" : "=r"(a) : "h"(q[0]), "h"(q[1])); asm("mov.b32 %0,{%1,%2};" : "=r"(b) : "h"(q[2]), "h"(q[3])); v=v*5+(a^b*3); v^=q[1]+q[2]; } y[OWN]=v; }
// The first of an odd number of trips stands alone, so lanes do not always agree on where they begin.
__global__ void structs_odd(const int*x,int*y,int*z,int n){ int v=1,m=n*4/18,i=TX/2,s=DX/2; if(i<m){
  if((m-1-i)/s&1){ } else { TRIP(i) i+=s; } for(;i<m;i+=2*s){ TRIP(i) v^=i; TRIP(i+s) } } y[OWN]=v; }
// Each block begins somewhere else, and a thread may end early.
__global__ void structs_ends(const int*x,int*y,int*z,int n){ int v=BX,m=n*4/18; for(int i=TX/2+BX*3;i<m;i+=5){ TRIP(i) if((v&63)==9) break; } y[OWN]=v; }
// An index that is near its type's end: who would go on has wrapped.
__global__ void structs_wrap(const int*x,int*y,int*z,int n){ int v=0,m=n*4/18,e=0x7fffffff-m+1; const char*c=(const char*)x-18L*e;
  for(int i=e+TX/2;i>0;){ v+=*(const u16*)(c+18L*i+TX%2*2); v=v*5+*(const u16*)(c+18L*i+TX%2*2+2); i=(int)((unsigned)i+DX/2); } y[OWN]=v; }
// Threads take steps of their own, or go along two ways at once.
__global__ void structs_steps(const int*x,int*y,int*z,int n){ int v=7,m=n*4/18; for(int i=TX/2;i<m;i+=1+TX%3) TRIP(i)
  const char*p=(const char*)x+TX/2%8*36+TX%2*4,*q=p+8; for(int k=0;k<n/40;k++){ v=v*3+*(const int*)p-*(const int*)q+((const int*)p)[1]; p+=36; q+=k&1?36:72; if((v&31)==5) break; } y[OWN]=v; }
// Two threads write four halves of five, until one of them has enough: the other goes on alone.
__global__ void structs_writes(const int*x,int*y,int*z,int n){ int v=OWN; u16*o=(u16*)(z+BX*DX*4),*e=o+8*DX-4;
  for(u16*p=o+TX/2*5+TX%2*2;p<e;p+=DX/2*5){ p[0]=v; p[1]=v>>3; v=v*77+x[(unsigned)(v+TX)%n]; if((v&7)==3) break; } y[OWN]=v; }
// Quarters of sixteen lanes read one place or another, always the same ones.
__global__ void structs_sides(const int*x,int*y,int*z,int n){ int v=3,m=n/8,p=TX%16/4; for(int i=TX/16;i<m;i+=DX/16){ const struct K*b=(const struct K*)x+i; u16 s,t;
  if(p<2){ s=b->k[p]&0x3f3f; t=b->k[p+2]&0x3f3f; } else { s=(b->k[p+2]&0xf0f)|(b->k[p-2]&0xc0c0)>>2; t=(b->k[p+2]>>4&0xf0f)|(b->k[p]&0xc0c0)>>2; }
  v=dot(b->q[TX%4],s*257,v); v=v*3+t; } y[OWN]=v; }
// The same where what stands in front of the scales is read in any case: all lanes read all of them.
__global__ void structs_fields(const int*x,int*y,int*z,int n){ int v=3,m=n/8,p=TX%16/4; for(int i=TX/16;i<m;i+=DX/16){ const struct K*b=(const struct K*)x+i; u16 s,t;
  if(p<2){ s=b->k[p]&0x3f3f; t=b->k[p+2]&0x3f3f; } else { s=(b->k[p+2]&0xf0f)|(b->k[p-2]&0xc0c0)>>2; t=(b->k[p+2]>>4&0xf0f)|(b->k[p]&0xc0c0)>>2; }
  v=dot(b->q[TX%4],s*257,v); v=v*3+t+b->d; } y[OWN]=v; }
// Places put together by OR, from an index that may wrap for all that is known.
__global__ void structs_ors(const int*x,int*y,int*z,int n){ int v=0,m=n/12,e=n%3,p=TX%16/4; for(int i=TX/16;i<m-2;i+=DX/16){ const char*b=(const char*)x; unsigned long o=(long)(i+e)*48;
  o|=p&1?2:0; o|=12; v=v*7+*(const u16*)(b+o); v^=*(const u16*)(b+o-8)*3; o|=32; v+=*(const short*)(b+(o&~4ul)); } y[OWN]=v; }
__global__ void structs_wraps(const int*x,int*y,int*z,int n){ int v=OWN,e=n*0x1001+TX/2; const char*b=(const char*)x-18L*(n*0x1001); if(TX/2*18+36<n*4){
  v=v*3+*(const u16*)(b+18L*e+TX%2*4); v=v*3+*(const u16*)(b+18L*e+TX%2*4+2); v^=*(const short*)(b+18L*e+16); } y[OWN]=v; }
// A warp's part of a tile, of which the next warp's is asked for, also behind the place where lanes meet again.
__global__ void structs_tile(const int*x,int*y,int*z,int n){ int v=0; if(n>=(int)DX*4){ const int*p=x+TX/32*128+TX%32; int a=p[0],b=p[32],c=p[64],d=p[96];
  z+=BX*DX*4+TX*4; if(a&1){ z[0]=v=a*b; z[1]=v^c; v+=z[0]*d; } else { z[2]=v=c*d; z[3]=v^a; v-=z[2]*b; }
  for(int k=0;k<3;k++){ v=v*5+a; a^=v>>3; b+=a*k; c-=b; d^=c; } v+=a+b+c+d; } y[OWN]=v; }
// Bytes and halves anywhere, up to the last ones of what there is.
__global__ void structs_bytes(const int*x,int*y,int*z,int n){ int v=0; for(int k=0;k<6;k++){ unsigned w=(unsigned)x[(OWN+k*37)%n];
  v=v*31+((const u8*)x)[w%(4*n)]; v+=((const signed char*)x)[4*n-1-w%7]; if(w&3) v^=((const u16*)x)[(w>>8)%(2*n)]; else v-=((const short*)x)[2*n-1-(w>>5)%3]; } y[OWN]=v; }
}
