//! Interoperability with OpenGL, EGL and VDPAU: no device here draws, so nothing can be shared with those that do.
//!
//! What registers or connects answers not-supported; what takes a registered resource finds that there is none. The types of other
//! APIs are never looked into, so bodies leave them open.

use core::ffi::*;

use border::Out;
use cuda_abi::CUresult;

use super::refuse;
use crate::{Error, Result, device};

const GL: &str = "OpenGL interoperability: no device here draws";
const EGL: &str = "EGL interoperability: no device here draws";
const VDPAU: &str = "VDPAU interoperability: no device here plays video";
/// No resource was ever registered.
const UNREGISTERED: Error = Error::Driver(CUresult::CUDA_ERROR_INVALID_HANDLE);

pub fn cudaEGLStreamConsumerAcquireFrame<A, B, C>(
    _conn: A,
    _pCudaResource: Out<'_, B>,
    _pStream: C,
    _timeout: c_uint,
) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamConsumerConnect<A, B>(_conn: A, _eglStream: B) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamConsumerConnectWithFlags<A, B>(_conn: A, _eglStream: B, _flags: c_uint) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamConsumerDisconnect<A>(_conn: A) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamConsumerReleaseFrame<A, B, C>(_conn: A, _pCudaResource: B, _pStream: C) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamProducerConnect<A, B>(_conn: A, _eglStream: B, _width: c_int, _height: c_int) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamProducerDisconnect<A>(_conn: A) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamProducerPresentFrame<A, B, C>(_conn: A, _eglframe: B, _pStream: C) -> Result {
    refuse(EGL)
}

pub fn cudaEGLStreamProducerReturnFrame<A, B, C>(_conn: A, _eglframe: B, _pStream: C) -> Result {
    refuse(EGL)
}

pub fn cudaEventCreateFromEGLSync<A, B>(_phEvent: Out<'_, A>, _eglSync: B, _flags: c_uint) -> Result {
    refuse(EGL)
}

pub fn cudaGLGetDevices<A>(
    _pCudaDeviceCount: Out<'_, c_uint>,
    _pCudaDevices: Out<'_, c_int>,
    _cudaDeviceCount: c_uint,
    _deviceList: A,
) -> Result {
    refuse(GL)
}

pub fn cudaGLMapBufferObject(_devPtr: Out<'_, *mut c_void>, _bufObj: c_uint) -> Result {
    refuse(GL)
}

pub fn cudaGLMapBufferObjectAsync<A>(_devPtr: Out<'_, *mut c_void>, _bufObj: c_uint, _stream: A) -> Result {
    refuse(GL)
}

pub fn cudaGLRegisterBufferObject(_bufObj: c_uint) -> Result {
    refuse(GL)
}

pub fn cudaGLSetBufferObjectMapFlags(_bufObj: c_uint, _flags: c_uint) -> Result {
    refuse(GL)
}

pub fn cudaGLSetGLDevice(_device: c_int) -> Result {
    refuse(GL)
}

pub fn cudaGLUnmapBufferObject(_bufObj: c_uint) -> Result {
    refuse(GL)
}

pub fn cudaGLUnmapBufferObjectAsync<A>(_bufObj: c_uint, _stream: A) -> Result {
    refuse(GL)
}

pub fn cudaGLUnregisterBufferObject(_bufObj: c_uint) -> Result {
    refuse(GL)
}

pub fn cudaGraphicsEGLRegisterImage<A, B>(_pCudaResource: Out<'_, A>, _image: B, _flags: c_uint) -> Result {
    refuse(EGL)
}

pub fn cudaGraphicsGLRegisterBuffer<A>(_resource: Out<'_, A>, _buffer: c_uint, _flags: c_uint) -> Result {
    refuse(GL)
}

pub fn cudaGraphicsGLRegisterImage<A>(
    _resource: Out<'_, A>,
    _image: c_uint,
    _target: c_uint,
    _flags: c_uint,
) -> Result {
    refuse(GL)
}

pub fn cudaGraphicsMapResources<A, B>(_count: c_int, _resources: A, _stream: B) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsResourceGetMappedEglFrame<A, B>(
    _eglFrame: Out<'_, A>,
    _resource: B,
    _index: c_uint,
    _mipLevel: c_uint,
) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsResourceGetMappedMipmappedArray<A, B>(
    _mipmappedArray: Out<'_, A>,
    _resource: B,
) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsResourceGetMappedPointer<A>(
    _devPtr: Out<'_, *mut c_void>,
    _size: Out<'_, usize>,
    _resource: A,
) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsResourceSetMapFlags<A>(_resource: A, _flags: c_uint) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsSubResourceGetMappedArray<A, B>(
    _array: Out<'_, A>,
    _resource: B,
    _arrayIndex: c_uint,
    _mipLevel: c_uint,
) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsUnmapResources<A, B>(_count: c_int, _resources: A, _stream: B) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsUnregisterResource<A>(_resource: A) -> Result {
    device::attach()?;
    Err(UNREGISTERED)
}

pub fn cudaGraphicsVDPAURegisterOutputSurface<A, B>(
    _resource: Out<'_, A>,
    _vdpSurface: B,
    _flags: c_uint,
) -> Result {
    refuse(VDPAU)
}

pub fn cudaGraphicsVDPAURegisterVideoSurface<A, B>(
    _resource: Out<'_, A>,
    _vdpSurface: B,
    _flags: c_uint,
) -> Result {
    refuse(VDPAU)
}

pub fn cudaVDPAUGetDevice<A, B>(_device: Out<'_, c_int>, _vdpDevice: A, _vdpGetProcAddress: B) -> Result {
    refuse(VDPAU)
}

pub fn cudaVDPAUSetVDPAUDevice<A, B>(_device: c_int, _vdpDevice: A, _vdpGetProcAddress: B) -> Result {
    refuse(VDPAU)
}
