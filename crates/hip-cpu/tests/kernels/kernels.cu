// Kernels for tests/differential.rs. The PTX beside it is made by
//   clang-19 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_80 -Xclang -target-feature -Xclang +ptx83 -O3 -S -o kernels.ptx kernels.cu
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define TX __nvvm_read_ptx_sreg_tid_x()
#define TY __nvvm_read_ptx_sreg_tid_y()
#define BX __nvvm_read_ptx_sreg_ctaid_x()
#define BY __nvvm_read_ptx_sreg_ctaid_y()
#define DX __nvvm_read_ptx_sreg_ntid_x()
#define DY __nvvm_read_ptx_sreg_ntid_y()
#define GX __nvvm_read_ptx_sreg_nctaid_x()
#define SYNC __syncthreads()
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
}
