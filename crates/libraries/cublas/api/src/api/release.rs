//! Which release each major says it is. Source: cuBLAS manual, "cublasGetVersion()", "cublasGetProperty()"; the numbers of the
//! majors before the newest are those that NVIDIA's own libraries of 11.8 and 12.9 answer (without a GPU).

use core::ffi::c_int;

use border::Out;

use crate::{CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
use crate::{Error, Result, cublasHandle_t, handle, legacy, libraryPropertyType};

struct Release {
    major: c_int,
    minor: c_int,
    patch: c_int,
    /// The version of cudart that it was built with.
    cudart: usize,
}

/// The last of its major.
const V11: Release = Release { major: 11, minor: 11, patch: 3, cudart: 11080 };
/// The last of its major.
const V12: Release = Release { major: 12, minor: 9, patch: 1, cudart: 12080 };
/// That of the headers which our constants are from.
const V13: Release = Release {
    major: CUBLAS_VER_MAJOR as c_int,
    minor: CUBLAS_VER_MINOR as c_int,
    patch: CUBLAS_VER_PATCH as c_int,
    cudart: 13000,
};

impl Release {
    fn version(&self) -> c_int {
        10000 * self.major + 100 * self.minor + self.patch
    }

    fn property(&self, property: libraryPropertyType, value: Out<'_, c_int>) -> Result {
        value.write(match property {
            libraryPropertyType::MAJOR_VERSION => self.major,
            libraryPropertyType::MINOR_VERSION => self.minor,
            libraryPropertyType::PATCH_LEVEL => self.patch,
            _ => return Err(Error::InvalidValue("there is no such property")),
        });
        Ok(())
    }
}

pub fn cublasGetVersion_v2(handle: cublasHandle_t, version: Out<'_, c_int>) -> Result {
    handle::get(handle)?;
    version.write(V13.version());
    Ok(())
}

pub fn cublasGetVersion(version: Out<'_, c_int>) -> Result {
    cublasGetVersion_v2(legacy::handle()?, version)
}

pub fn cublasGetProperty(property: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    V13.property(property, value)
}

pub fn cublasGetCudartVersion() -> usize {
    V13.cudart
}

pub fn cublasLtGetVersion() -> usize {
    V13.version().unsigned_abs() as usize
}

pub fn cublasGetVersion_v2_v12(handle: cublasHandle_t, version: Out<'_, c_int>) -> Result {
    handle::get(handle)?;
    version.write(V12.version());
    Ok(())
}

pub fn cublasGetVersion_v12(version: Out<'_, c_int>) -> Result {
    cublasGetVersion_v2_v12(legacy::handle()?, version)
}

pub fn cublasGetProperty_v12(property: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    V12.property(property, value)
}

pub fn cublasGetCudartVersion_v12() -> usize {
    V12.cudart
}

pub fn cublasLtGetVersion_v12() -> usize {
    V12.version().unsigned_abs() as usize
}

pub fn cublasGetVersion_v2_v11(handle: cublasHandle_t, version: Out<'_, c_int>) -> Result {
    handle::get(handle)?;
    version.write(V11.version());
    Ok(())
}

pub fn cublasGetVersion_v11(version: Out<'_, c_int>) -> Result {
    cublasGetVersion_v2_v11(legacy::handle()?, version)
}

pub fn cublasGetProperty_v11(property: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    V11.property(property, value)
}

pub fn cublasGetCudartVersion_v11() -> usize {
    V11.cudart
}

pub fn cublasLtGetVersion_v11() -> usize {
    V11.version().unsigned_abs() as usize
}

// cuBLASLt has these of its own, and says the same.
pub use self::{
    cublasGetCudartVersion as cublasLtGetCudartVersion,
    cublasGetCudartVersion_v11 as cublasLtGetCudartVersion_v11,
    cublasGetCudartVersion_v12 as cublasLtGetCudartVersion_v12, cublasGetProperty as cublasLtGetProperty,
    cublasGetProperty_v11 as cublasLtGetProperty_v11, cublasGetProperty_v12 as cublasLtGetProperty_v12,
};
