//! Interoperability with OpenGL, EGL, VDPAU and NvSci: no device here draws, so nothing can be shared with those that do.
//!
//! What registers or connects answers not-supported; what takes a registered resource finds that there is none.

use core::ffi::*;

use border::Out;
use cuda_abi::*;

use super::refuse;
use crate::object::Device;
use crate::{Error, Result};

// HIP differs: it shares buffers with AMD's OpenGL only, and has neither EGL streams, VDPAU nor NvSci. Without a resource that was
// registered all calls that take one answer an invalid handle.
const GL: &str = "OpenGL interoperability: no device here draws";
const EGL: &str = "EGL interoperability: no device here draws";
const VDPAU: &str = "VDPAU interoperability: no device here plays video";

pub fn cuEGLStreamConsumerAcquireFrame(
    _conn: *mut CUeglStreamConnection,
    _pCudaResource: Out<'_, CUgraphicsResource>,
    _pStream: *mut CUstream,
    _timeout: c_uint,
) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamConsumerConnect(_conn: *mut CUeglStreamConnection, _stream: EGLStreamKHR) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamConsumerConnectWithFlags(
    _conn: *mut CUeglStreamConnection,
    _stream: EGLStreamKHR,
    _flags: c_uint,
) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamConsumerDisconnect(_conn: *mut CUeglStreamConnection) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamConsumerReleaseFrame(
    _conn: *mut CUeglStreamConnection,
    _pCudaResource: CUgraphicsResource,
    _pStream: *mut CUstream,
) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamProducerConnect(
    _conn: *mut CUeglStreamConnection,
    _stream: EGLStreamKHR,
    _width: EGLint,
    _height: EGLint,
) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamProducerDisconnect(_conn: *mut CUeglStreamConnection) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamProducerPresentFrame(
    _conn: *mut CUeglStreamConnection,
    _eglframe: CUeglFrame,
    _pStream: *mut CUstream,
) -> Result {
    refuse(EGL)
}

pub fn cuEGLStreamProducerReturnFrame(
    _conn: *mut CUeglStreamConnection,
    _eglframe: *mut CUeglFrame,
    _pStream: *mut CUstream,
) -> Result {
    refuse(EGL)
}

pub fn cuGLCtxCreate(_pCtx: Out<'_, CUcontext>, _Flags: c_uint, _device: CUdevice) -> Result {
    refuse(GL)
}

pub fn cuGLCtxCreate_v2(_pCtx: Out<'_, CUcontext>, _Flags: c_uint, _device: CUdevice) -> Result {
    refuse(GL)
}

pub fn cuGLGetDevices(
    _pCudaDeviceCount: Out<'_, c_uint>,
    _pCudaDevices: Out<'_, CUdevice>,
    _cudaDeviceCount: c_uint,
    _deviceList: CUGLDeviceList,
) -> Result {
    refuse(GL)
}

pub fn cuGLGetDevices_v2(
    _pCudaDeviceCount: Out<'_, c_uint>,
    _pCudaDevices: Out<'_, CUdevice>,
    _cudaDeviceCount: c_uint,
    _deviceList: CUGLDeviceList,
) -> Result {
    refuse(GL)
}

pub fn cuGLInit() -> Result {
    refuse(GL)
}

pub fn cuGLMapBufferObject(
    _dptr: Out<'_, CUdeviceptr_v1>,
    _size: Out<'_, c_uint>,
    _buffer: GLuint,
) -> Result {
    refuse(GL)
}

pub fn cuGLMapBufferObjectAsync(
    _dptr: Out<'_, CUdeviceptr_v1>,
    _size: Out<'_, c_uint>,
    _buffer: GLuint,
    _hStream: CUstream,
) -> Result {
    refuse(GL)
}

pub fn cuGLMapBufferObjectAsync_v2(
    _dptr: Out<'_, CUdeviceptr>,
    _size: Out<'_, usize>,
    _buffer: GLuint,
    _hStream: CUstream,
) -> Result {
    refuse(GL)
}

pub fn cuGLMapBufferObject_v2(_dptr: Out<'_, CUdeviceptr>, _size: Out<'_, usize>, _buffer: GLuint) -> Result {
    refuse(GL)
}

pub fn cuGLRegisterBufferObject(_buffer: GLuint) -> Result {
    refuse(GL)
}

pub fn cuGLSetBufferObjectMapFlags(_buffer: GLuint, _Flags: c_uint) -> Result {
    refuse(GL)
}

pub fn cuGLUnmapBufferObject(_buffer: GLuint) -> Result {
    refuse(GL)
}

pub fn cuGLUnmapBufferObjectAsync(_buffer: GLuint, _hStream: CUstream) -> Result {
    refuse(GL)
}

pub fn cuGLUnregisterBufferObject(_buffer: GLuint) -> Result {
    refuse(GL)
}

pub fn cuGraphicsEGLRegisterImage(
    _pCudaResource: Out<'_, CUgraphicsResource>,
    _image: EGLImageKHR,
    _flags: c_uint,
) -> Result {
    refuse(EGL)
}

pub fn cuGraphicsGLRegisterBuffer(
    _pCudaResource: Out<'_, CUgraphicsResource>,
    _buffer: GLuint,
    _Flags: c_uint,
) -> Result {
    refuse(GL)
}

pub fn cuGraphicsGLRegisterImage(
    _pCudaResource: Out<'_, CUgraphicsResource>,
    _image: GLuint,
    _target: GLenum,
    _Flags: c_uint,
) -> Result {
    refuse(GL)
}

pub fn cuGraphicsMapResources(
    _count: c_uint,
    _resources: *mut CUgraphicsResource,
    _hStream: CUstream,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsResourceGetMappedEglFrame(
    _eglFrame: Out<'_, CUeglFrame>,
    _resource: CUgraphicsResource,
    _index: c_uint,
    _mipLevel: c_uint,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsResourceGetMappedMipmappedArray(
    _pMipmappedArray: Out<'_, CUmipmappedArray>,
    _resource: CUgraphicsResource,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsResourceGetMappedPointer(
    _pDevPtr: Out<'_, CUdeviceptr_v1>,
    _pSize: Out<'_, c_uint>,
    _resource: CUgraphicsResource,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsResourceGetMappedPointer_v2(
    _pDevPtr: Out<'_, CUdeviceptr>,
    _pSize: Out<'_, usize>,
    _resource: CUgraphicsResource,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsResourceSetMapFlags(_resource: CUgraphicsResource, _flags: c_uint) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsResourceSetMapFlags_v2(_resource: CUgraphicsResource, _flags: c_uint) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsSubResourceGetMappedArray(
    _pArray: Out<'_, CUarray>,
    _resource: CUgraphicsResource,
    _arrayIndex: c_uint,
    _mipLevel: c_uint,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsUnmapResources(
    _count: c_uint,
    _resources: *mut CUgraphicsResource,
    _hStream: CUstream,
) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsUnregisterResource(_resource: CUgraphicsResource) -> Result {
    crate::process::driver()?;
    Err(Error::InvalidHandle("resource: none was ever registered"))
}

pub fn cuGraphicsVDPAURegisterOutputSurface(
    _pCudaResource: Out<'_, CUgraphicsResource>,
    _vdpSurface: VdpOutputSurface,
    _flags: c_uint,
) -> Result {
    refuse(VDPAU)
}

pub fn cuGraphicsVDPAURegisterVideoSurface(
    _pCudaResource: Out<'_, CUgraphicsResource>,
    _vdpSurface: VdpVideoSurface,
    _flags: c_uint,
) -> Result {
    refuse(VDPAU)
}

pub fn cuVDPAUCtxCreate(
    _pCtx: Out<'_, CUcontext>,
    _flags: c_uint,
    _device: CUdevice,
    _vdpDevice: VdpDevice,
    _vdpGetProcAddress: VdpGetProcAddress,
) -> Result {
    refuse(VDPAU)
}

pub fn cuVDPAUCtxCreate_v2(
    _pCtx: Out<'_, CUcontext>,
    _flags: c_uint,
    _device: CUdevice,
    _vdpDevice: VdpDevice,
    _vdpGetProcAddress: VdpGetProcAddress,
) -> Result {
    refuse(VDPAU)
}

pub fn cuVDPAUGetDevice(
    _pDevice: Out<'_, CUdevice>,
    _vdpDevice: VdpDevice,
    _vdpGetProcAddress: VdpGetProcAddress,
) -> Result {
    refuse(VDPAU)
}

pub fn cuDeviceGetNvSciSyncAttributes(
    _nvSciSyncAttrList: *mut c_void,
    dev: CUdevice,
    _flags: c_int,
) -> Result {
    Device::get(dev)?;
    refuse("NvSciSync: no device here can wait for its fences")
}
