// Kernels for tests/differential.rs. The PTX beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O3 -S -o kernels.ptx kernels.cu
#include "device.h"
extern "C" {
__global__ void vecadd(const float*a,const float*b,float*c,int n){int i=BX*DX+TX; if(i<n)c[i]=a[i]+b[i];}
__global__ void saxpy_stride(float s,const float*x,float*y,int n){for(int i=BX*DX+TX;i<n;i+=DX*GX)y[i]=s*x[i]+y[i];}
__global__ void matmul(const float*A,const float*B,float*C,int n){
 __shared__ float a[16][16]; __shared__ float b[16][16];
 int ty=TY,tx=TX; int row=BY*16+ty,col=BX*16+tx; float s=0;
 for(int t=0;t<n/16;t++){ a[ty][tx]=A[row*n+t*16+tx]; b[ty][tx]=B[(t*16+ty)*n+col]; SYNC;
  for(int k=0;k<16;k++) s+=a[ty][k]*b[k][tx]; SYNC; }
 C[row*n+col]=s; }
__global__ void reduce_tree(const int*x,int*out,int n){ __shared__ int s[1024]; int t=TX; int i=BX*DX+t; s[t]=i<n?x[i]:0; SYNC;
 for(int k=DX/2;k>0;k>>=1){ if(t<k)s[t]+=s[t+k]; SYNC;} if(t==0)out[BX]=s[0]; }
__global__ void mandel(int*out,int w,int h,int maxit){ int x=BX*DX+TX,y=BY*DY+TY; if(x>=w||y>=h)return; float cx=-2.f+3.f*x/w,cy=-1.f+2.f*y/h,zx=0,zy=0;int it=0;
 while(it<maxit&&zx*zx+zy*zy<4.f){float t=zx*zx-zy*zy+cx;zy=2*zx*zy+cy;zx=t;it++;} out[y*w+x]=it;}
__global__ void histogram(const unsigned char*in,unsigned*out,int n){ __shared__ unsigned h[256]; for(int i=TX;i<256;i+=DX)h[i]=0; SYNC;
 for(int i=BX*DX+TX;i<n;i+=DX*GX)__nvvm_atom_add_gen_i((int*)&h[in[i]],1); SYNC; for(int i=TX;i<256;i+=DX)__nvvm_atom_add_gen_i((int*)&out[i],h[i]); }
__global__ void early_return(const int*x,int*y,int n){ __shared__ int s[1024]; int t=TX; int i=BX*DX+t; s[t]=0; if(i>=n)return; s[t]=x[i]*3; SYNC; int j=t^1; y[i]=(i/ DX*DX + j< n)? s[j]+x[i]:x[i]; }
__global__ void nested(const int*x,int*y,int n){ int i=BX*DX+TX; if(i>=n)return; int v=x[i],acc=0;
 for(int a=0;a<v%13;a++){ if(a==7)break; for(int b=a;b<(v>>2)%11;b++){ if((a*b+v)%5==0)continue; acc+=a*b+1; if(acc>200)goto out; } if(acc&1)acc+=3; else acc^=v; }
 out: y[i]=acc; }
__global__ void transpose(const float*in,float*out,int w,int h){ __shared__ float t[32][33]; int x=BX*32+TX,y=BY*32+TY; for(int j=0;j<32;j+=8) if(x<w&&y+j<h) t[TY+j][TX]=in[(y+j)*w+x]; SYNC; x=BY*32+TX;y=BX*32+TY; for(int j=0;j<32;j+=8) if(x<h&&y+j<w) out[(y+j)*h+x]=t[TX][TY+j]; }
__global__ void stencil(const float*in,float*out,int w,int h){int x=BX*DX+TX,y=BY*DY+TY; if(x>0&&x<w-1&&y>0&&y<h-1) out[y*w+x]=0.25f*(in[y*w+x-1]+in[y*w+x+1]+in[(y-1)*w+x]+in[(y+1)*w+x]);}
__global__ void nbody(const float*pos,float*out,int n){ __shared__ float sx[256],sy[256]; int i=BX*DX+TX; float x=pos[2*i],y=pos[2*i+1],ax=0,ay=0; for(int t=0;t<n;t+=DX){ sx[TX]=pos[2*(t+TX)];sy[TX]=pos[2*(t+TX)+1]; SYNC; for(int j=0;j<DX;j++){float dx=sx[j]-x,dy=sy[j]-y; float r=dx*dx+dy*dy+0.01f; float inv=1.f/r; ax+=dx*inv;ay+=dy*inv;} SYNC;} out[2*i]=ax;out[2*i+1]=ay;}
typedef float f4 __attribute__((ext_vector_type(4)));
__global__ void vec4(const f4*a,f4*b,int n){int i=BX*DX+TX; if(i<n){f4 v=a[i]; v.x+=v.y; v.y*=v.z; v.z-=v.w; b[i]=v;}}
__global__ void bytes(const unsigned char*a,short*b,signed char*c,int n){int i=BX*DX+TX; if(i<n){ b[i]=a[i]*3; c[i]=a[i]-100; }}
__global__ void local_array(const int*x,int*y,int n){int i=BX*DX+TX; int l[16]; for(int k=0;k<16;k++)l[k]=x[(i+k)%n]; int p=i; int s=0; for(int k=0;k<16;k++){p=(p*5+1)&15; s=s*3+l[p]; l[(p+k)&15]^=s;} if(i<n)y[i]=s+l[i&15];}
__global__ void scatter(const int*idx,int*y,int n){int i=BX*DX+TX; if(i<n)y[idx[i]]=i*2;}
__global__ void wrap(const int*x,int*y,unsigned off,int n){unsigned i=off+BX*DX+TX; unsigned long j=i; if((int)(BX*DX+TX)<n) y[BX*DX+TX]=x[(j>>31)&1]+(int)j + x[(unsigned)(j & 7)];}
__global__ void wrap_load(const int*x,int*y,unsigned off,int n){ unsigned t=BX*DX+TX; unsigned i=off+t; if(t<n){ unsigned long j=i; unsigned long k = (j + 64) & 0xfffffffful; y[t]=x[(long)(int)i + 64]; } }
#define FULL 0xffffffffu
#define SHFL_DOWN(m,v,d) __nvvm_shfl_sync_down_i32(m,v,d,31)
__global__ void shfl_reduce(const int*x,int*out,int n){ __shared__ int s[32]; int i=BX*DX+TX; int v=i<n?x[i]:0; for(int o=16;o>0;o>>=1) v+=SHFL_DOWN(FULL,v,o);
 int lane=TX&31,w=TX>>5; if(lane==0)s[w]=v; __syncthreads(); if(w==0){ v= TX<(DX+31)/32? s[lane]:0; for(int o=16;o>0;o>>=1) v+=SHFL_DOWN(FULL,v,o); if(lane==0) out[BX]=v; } }
__global__ void shfl_modes(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i]; int a=__nvvm_shfl_sync_up_i32(FULL,v,3,0); int b=__nvvm_shfl_sync_bfly_i32(FULL,v,5,31); int c=__nvvm_shfl_sync_idx_i32(FULL,v,v&63,31); int d=__nvvm_shfl_sync_down_i32(FULL,v,n&7,(24<<8)|31); int e=__nvvm_shfl_sync_up_i32(FULL,v,n&15,16<<8); out[i]=a+b*3+c*5+d*7+e*11; }
__global__ void scan(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i],lane=TX&31; for(int o=1;o<32;o*=2){ int t=__nvvm_shfl_sync_up_i32(FULL,v,o,0); if(lane>=o)v+=t; } out[i]=v; }
__global__ void votes(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i]; unsigned b=__nvvm_vote_ballot_sync(FULL,v&1); int all=__nvvm_vote_all_sync(FULL,v<900),any=__nvvm_vote_any_sync(FULL,v>990),uni=__nvvm_vote_uni_sync(FULL,v>2000); out[i]=__builtin_popcount(b&((1u<<(TX&31))-1))+all*100+any*1000+uni*10000; }
__global__ void compact(const int*x,int*out,int*count,int n){ int i=BX*DX+TX; int lane=TX&31; int keep= i<n && (x[i]%3==0); unsigned m=__nvvm_vote_ballot_sync(FULL,keep); int base=0; if(lane==0&&m) base=__nvvm_atom_add_gen_i(count,__builtin_popcount(m)); base=__nvvm_shfl_sync_idx_i32(FULL,base,0,31); if(keep) out[i]=base>=0?x[i]+__builtin_popcount(m&((1u<<lane)-1)):0; }
__global__ void ballot_branch(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i]; int p=v>500; unsigned m=__nvvm_vote_ballot_sync(FULL,p); int r=0; if(p){ int leader=__builtin_ctz(m); r=__nvvm_shfl_sync_idx_i32(m,v,leader,31)+__builtin_popcount(m);} out[i]=r; }
__global__ void active(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i],r=0; if(v&1){ unsigned m=__nvvm_activemask(); r=__builtin_popcount(m)>0? (int)(m>>(TX&31)&1):7; if(v&2) r+=2; } out[i]=r; }
__global__ void matches(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i]&7; unsigned m=__nvvm_match_any_sync_i32(FULL,v); int p; unsigned m2=__nvvm_match_all_sync_i32p(FULL,i/32,&p); out[i]=m*3+m2+p; }
__global__ void reduxes(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i]-500; out[i]=__nvvm_redux_sync_add(v,FULL)+3*__nvvm_redux_sync_min(v,FULL)+5*__nvvm_redux_sync_umax(v,FULL)+7*__nvvm_redux_sync_xor(v,FULL)+(__nvvm_redux_sync_and(v,FULL)|__nvvm_redux_sync_or(v,FULL)); }
__global__ void early_shfl(const int*x,int*out,int n){ int i=BX*DX+TX; if(i>=n)return; int v=x[i]; v+=__nvvm_shfl_sync_bfly_i32(FULL,v,1,31); out[i]=(i^1)<n?v:x[i]; }
__global__ void warp_role(const int*x,int*out,int n){ int i=BX*DX+TX; int w=TX>>5; int v=x[i]; if(w&1){ for(int o=16;o>0;o>>=1) v+=__nvvm_shfl_sync_bfly_i32(FULL,v,o,31); } else if (w==2) { v=__nvvm_vote_ballot_sync(FULL,v&4); } out[i]=v; }
__device__ inline float as_float(int i){ return __builtin_bit_cast(float,i);} __device__ inline int as_int(float f){ return __builtin_bit_cast(int,f);}
__global__ void cas_add(const int*x,int*sum,int n){ int i=BX*DX+TX; if(i>=n)return; int*a=sum+(x[i]&3); int old=*a,assumed; do{ assumed=old; old=__nvvm_atom_cas_gen_i(a,assumed,as_int(as_float(assumed)+ (float)(x[i]&15))); }while(assumed!=old); }
__global__ void spin_lock(int*lock,int*sum,int n){ int i=BX*DX+TX; if(i>=n)return; while(__nvvm_atom_cas_gen_i(lock,0,1)!=0){} *(volatile int*)sum+=i; __nvvm_membar_gl(); __nvvm_atom_xchg_gen_i(lock,0); }
__global__ void tickets(int*next,int*out,int n){ for(;;){ int t=__nvvm_atom_add_gen_i(next,1); if(t>=n)break; out[t]=t*t+1; } }
__global__ void loop_exit_barrier(const int*x,int*out,int n){ __shared__ int s[1024]; int i=BX*DX+TX; int acc=0; int lim=x[i]%7; for(int k=0;;k++){ s[TX]=k+x[i]; __syncthreads(); acc+=s[(TX+k)%DX]*(k+1); __syncthreads(); if(k==lim)break; } out[i]=acc>0; }
__global__ void uniform_barrier(const int*x,int*out,const int*flags,int n){ __shared__ int s[1024]; int i=BX*DX+TX; int acc=x[i]; for(int k=0;k<n;k++){ if(flags[k]&1){ s[TX]=acc; __syncthreads(); acc+=s[DX-1-TX]; __syncthreads(); } else acc=acc*3+k; } out[i]=acc; }
__global__ void divergent_barrier(const int*x,int*out,int n){ __shared__ int s[1024]; int i=BX*DX+TX; s[TX]=x[i]; if(TX<DX/2){ s[TX]+=5; __syncthreads(); s[TX]*=3; } out[i]=s[TX]; }
__global__ void tid_barrier(const int*x,int*out,int n){ __shared__ int s[1024]; int i=BX*DX+TX; s[TX]=x[i]; if(TX&1){ __syncthreads(); s[TX]+=1; } else { __syncthreads(); s[TX]+=2; } __syncthreads(); out[i]=s[TX^1]; }
__global__ void counts(const int*x,int*out,int n){ int i=BX*DX+TX; int v=x[i]; int c=__nvvm_bar0_popc(v&1); int a=__nvvm_bar0_and(v<2000); int o=__nvvm_bar0_or(v>990); out[i]=c+a*10000+o*100000; }
__global__ void switches(const int*x,int*out,int n){ int i=BX*DX+TX; if(i>=n)return; int v=x[i],r; switch(v%9){case 0:r=v*3;break;case 1:r=v/7;break;case 2:r=v%11;break;case 3:r=~v;break;case 4:r=v<<3;break;case 5:r=v>>2;break;case 6:r=v/(v%4);break;case 7:r=v*v;break;default:r=-v;} out[i]=r; }
__global__ void cube(const int*x,int*out,int n){ int t=TX+DX*(TY+DY*__nvvm_read_ptx_sreg_tid_z()); int i=BX*DX*DY*__nvvm_read_ptx_sreg_ntid_z()+t; out[i]=x[i]*(TX+1)+TY*100+__nvvm_read_ptx_sreg_tid_z()*10000; }
__global__ void doubles(const double*x,double*y,int n){ int i=BX*DX+TX; if(i<n){ double s=x[i]; for(int k=0;k<(i&7);k++){ s=s*0.5+1.0/(s*s+1.0); if(s>3.0) break; } y[i]=s; } }
__global__ void volatile_reduce(const int*x,int*out,int n){ __shared__ int s[64]; int t=TX; s[t]=x[BX*DX+t]; __syncthreads(); if(t<32){ volatile int*v=s; v[t]+=v[t+32]; v[t]+=v[(t+16)&63]; } __syncthreads(); out[BX*DX+t]=s[t]; }
__global__ void calls(const int*x,int*out,int n){ int i=BX*DX+TX; if(i>=n)return; long s=0; const int*p=x+i; for(int k=0;k<n-i&&k<20;k++,p++){ s=s*31+*p; if((s&31)==7) s/= (*p|1);} out[i]=(int)(s^(s>>32)); }
__global__ void bitonic(int*x,int n){ __shared__ int s[512]; s[TX]=x[BX*DX+TX]; __syncthreads(); for(int k=2;k<=DX;k*=2) for(int j=k/2;j>0;j/=2){ int o=TX^j; if(o>TX){ int a=s[TX],b=s[o]; if((TX&k)==0? a>b : a<b){ s[TX]=b; s[o]=a; } } __syncthreads(); } x[BX*DX+TX]=s[TX]; }
__global__ void gen_shared(const int*x,int*out,int n){ __shared__ int s[256]; int i=BX*DX+TX; int*p= (x[i]&1)? s+(TX&255) : out+i; s[TX&255]=0; out[i]=1; __syncthreads(); *p=x[i]; __syncthreads(); if(x[i]&1) out[i]=s[TX&255]; }
__device__ void*malloc(unsigned long); __device__ void free(void*); __device__ int vprintf(const char*,void*);
__global__ void heap(const int*x,int*out,int n){ int i=BX*DX+TX; if(i>=n)return; int*p=(int*)malloc(8+(x[i]&31)*4); p[0]=x[i]; p[1]=i; if(x[i]==-77777){ struct{int a;int b;}args={i,x[i]}; vprintf("%d %d\n",&args); } out[i]=p[0]*3+p[1]; if(x[i]&1) free(p); }
__global__ void fences(const int*x,int*out,int n){ __shared__ int s[1024]; int i=BX*DX+TX; s[TX]=x[i]; __nvvm_membar_cta(); __nvvm_membar_gl(); unsigned long t=__nvvm_read_ptx_sreg_clock64(); __syncthreads(); __nvvm_membar_sys(); out[i]=s[DX-1-TX]+(t==0); }
__global__ void lanes(const int*x,int*out,int n){ int i=BX*DX+TX; out[i]=__nvvm_read_ptx_sreg_laneid()+100*__nvvm_read_ptx_sreg_warpid()+(__nvvm_read_ptx_sreg_lanemask_lt()^__nvvm_read_ptx_sreg_lanemask_ge()*3)+__nvvm_read_ptx_sreg_lanemask_eq()*5+__nvvm_read_ptx_sreg_nctaid_x(); }
__global__ void queue(const int*x,int*out,int n){ __shared__ int head; __shared__ int q[1024]; if(TX==0) head=0; __syncthreads(); int i=BX*DX+TX; if(x[i]%3){ int at=__nvvm_atom_add_gen_i(&head,1); q[at]=x[i]; } __syncthreads(); int sum=0; for(int k=0;k<head;k++) sum+=q[k]*q[k]; out[i]=sum; }
__global__ void shared_ops(const int*x,int*out,int n){ __shared__ int s[8]; int i=BX*DX+TX; if(TX<8) s[TX]= TX==1?-1:TX==3?0x7fffffff:0; __syncthreads(); __nvvm_atom_add_gen_i(&s[0],x[i]); __nvvm_atom_and_gen_i(&s[1],x[i]|0xff); __nvvm_atom_max_gen_i(&s[2],x[i]); __nvvm_atom_min_gen_i(&s[3],x[i]); __nvvm_atom_xor_gen_i(&s[4],x[i]*7); __nvvm_atom_or_gen_i(&s[5],x[i]); __nvvm_atom_inc_gen_ui((unsigned*)&s[6],12); __nvvm_atom_add_gen_i(&s[7],1); __syncthreads(); out[i]=s[TX&7]; }
}
