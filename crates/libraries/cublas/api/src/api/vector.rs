//! Vectors and matrices to the device and back: strided copies, which are the driver's 2-D copies.
//! Source: cuBLAS manual, "cublasSetVector()" and what follows it.

use core::ffi::c_void;

use cuda_abi::{CUDA_MEMCPY2D, CUmemorytype, CUresult, CUstream};

use crate::{Error, Result, cudaStream_t, require};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

/// `rows` × `columns` elements; the leading dimensions count elements.
#[derive(Clone, Copy)]
pub(crate) struct Copy2d {
    pub element_bytes: i64,
    pub rows: i64,
    pub columns: i64,
    pub from: *const c_void,
    pub from_ld: i64,
    pub to: *mut c_void,
    pub to_ld: i64,
}

impl Copy2d {
    /// `stream`: `None` for a copy that has ended when the call returns.
    ///
    /// # Safety
    /// The host's memory, on the side that the direction says, has as many elements, until they are copied.
    pub unsafe fn run(&self, direction: Direction, stream: Option<CUstream>) -> Result {
        let driver = kit::driver::driver()?;
        require(self.element_bytes > 0, "elemSize is not positive")?;
        require(self.rows >= 0 && self.columns >= 0, "a size is negative")?;
        require(
            self.from_ld >= self.rows.max(1) && self.to_ld >= self.rows.max(1),
            "a leading dimension is too small",
        )?;
        if self.rows == 0 || self.columns == 0 {
            return Ok(());
        }
        kit::driver::context(None)?;
        let bytes = |elements: i64| {
            let bytes =
                elements.checked_mul(self.element_bytes).and_then(|bytes| usize::try_from(bytes).ok());
            bytes.ok_or(Error::InvalidValue("the sizes overflow"))
        };
        let mut copy = CUDA_MEMCPY2D {
            srcPitch: bytes(self.from_ld)?,
            dstPitch: bytes(self.to_ld)?,
            WidthInBytes: bytes(self.rows)?,
            Height: self.columns as usize,
            ..CUDA_MEMCPY2D::default()
        };
        let (host, device) = (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_DEVICE);
        match direction {
            Direction::ToDevice => {
                (copy.srcMemoryType, copy.srcHost) = (host, self.from);
                (copy.dstMemoryType, copy.dstDevice) = (device, self.to.addr() as u64);
            }
            Direction::ToHost => {
                (copy.srcMemoryType, copy.srcDevice) = (device, self.from.addr() as u64);
                (copy.dstMemoryType, copy.dstHost) = (host, self.to);
            }
        }
        // SAFETY: the description outlives the call; the memory is the caller's promise.
        let code = unsafe {
            match stream {
                None => (driver.cuMemcpy2D_v2)(&copy),
                Some(stream) => (driver.cuMemcpy2DAsync_v2)(&copy, stream),
            }
        };
        if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::Mapping(code)) }
    }

    /// The way back.
    pub fn reversed(&self) -> Copy2d {
        Copy2d { from: self.to, from_ld: self.to_ld, to: self.from.cast_mut(), to_ld: self.from_ld, ..*self }
    }

    /// A vector is a matrix of one row.
    pub fn vector(
        n: i64,
        element_bytes: i64,
        from: *const c_void,
        from_inc: i64,
        to: *mut c_void,
        to_inc: i64,
    ) -> Copy2d {
        if from_inc == 1 && to_inc == 1 {
            return Copy2d {
                element_bytes,
                rows: n,
                columns: 1,
                from,
                from_ld: n.max(1),
                to,
                to_ld: n.max(1),
            };
        }
        Copy2d { element_bytes, rows: 1, columns: n, from, from_ld: from_inc, to, to_ld: to_inc }
    }
}

/// # Safety
/// The host's memory has as many elements as are said, until they are copied.
pub unsafe fn set_vector(
    n: i64,
    element_bytes: i64,
    from: *const c_void,
    from_inc: i64,
    to: *mut c_void,
    to_inc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Copy2d::vector(n, element_bytes, from, from_inc, to, to_inc).run(Direction::ToDevice, None) }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn set_matrix(
    rows: i64,
    columns: i64,
    element_bytes: i64,
    from: *const c_void,
    from_ld: i64,
    to: *mut c_void,
    to_ld: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        Copy2d { element_bytes, rows, columns, from, from_ld, to, to_ld }.run(Direction::ToDevice, None)
    }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn set_vector_async(
    n: i64,
    element_bytes: i64,
    from: *const c_void,
    from_inc: i64,
    to: *mut c_void,
    to_inc: i64,
    stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        Copy2d::vector(n, element_bytes, from, from_inc, to, to_inc).run(Direction::ToDevice, Some(stream))
    }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn set_matrix_async(
    rows: i64,
    columns: i64,
    element_bytes: i64,
    from: *const c_void,
    from_ld: i64,
    to: *mut c_void,
    to_ld: i64,
    stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        Copy2d { element_bytes, rows, columns, from, from_ld, to, to_ld }
            .run(Direction::ToDevice, Some(stream))
    }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn get_vector(
    n: i64,
    element_bytes: i64,
    from: *const c_void,
    from_inc: i64,
    to: *mut c_void,
    to_inc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Copy2d::vector(n, element_bytes, from, from_inc, to, to_inc).run(Direction::ToHost, None) }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn get_matrix(
    rows: i64,
    columns: i64,
    element_bytes: i64,
    from: *const c_void,
    from_ld: i64,
    to: *mut c_void,
    to_ld: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Copy2d { element_bytes, rows, columns, from, from_ld, to, to_ld }.run(Direction::ToHost, None) }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn get_vector_async(
    n: i64,
    element_bytes: i64,
    from: *const c_void,
    from_inc: i64,
    to: *mut c_void,
    to_inc: i64,
    stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        Copy2d::vector(n, element_bytes, from, from_inc, to, to_inc).run(Direction::ToHost, Some(stream))
    }
}

/// # Safety
/// As [`set_vector`].
pub unsafe fn get_matrix_async(
    rows: i64,
    columns: i64,
    element_bytes: i64,
    from: *const c_void,
    from_ld: i64,
    to: *mut c_void,
    to_ld: i64,
    stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        Copy2d { element_bytes, rows, columns, from, from_ld, to, to_ld }.run(Direction::ToHost, Some(stream))
    }
}
