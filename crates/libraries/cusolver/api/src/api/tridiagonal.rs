//! Eigenvalues of tridiagonal matrices. Source: cuSOLVER manual, `cusolverDnXstedc`.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::eigen::{self, Tridiagonal};
use cusolver_cpu::{Complex, Scalar};

use super::generic::{areas, real, same, typed};
use super::lifecycle::params;
use crate::arguments::{array, matrix, size};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;
use crate::{Error, Result};

/// Whether eigenvectors are wanted, and whether of the matrix that Z made tridiagonal.
#[derive(Clone, Copy)]
enum Wanted {
    Nothing,
    Own,
    OfZ,
}

fn check(
    compz: cusolverEigComp_t,
    (n, ldz): (i64, i64),
    (de, z, computed): (cudaDataType, cudaDataType, cudaDataType),
) -> Result<Wanted> {
    let wanted = match compz {
        cusolverEigComp_t::CUSOLVER_EIG_COMP_N => Wanted::Nothing,
        cusolverEigComp_t::CUSOLVER_EIG_COMP_I => Wanted::Own,
        cusolverEigComp_t::CUSOLVER_EIG_COMP_V => Wanted::OfZ,
        _ => return Err(Error::InvalidValue("there is no such job")),
    };
    let least = if matches!(wanted, Wanted::Nothing) { 1 } else { n.max(1) };
    require(size(n)? >= 0 && ldz >= least, "ldz is too small")?;
    same(z, &[computed])?;
    same(real(z), &[de])?;
    typed!(z, T => { let _: Option<T> = None; Ok(wanted) })
}

pub fn cusolverDnXstedc_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    compz: cusolverEigComp_t,
    n: i64,
    dataTypeDE: cudaDataType,
    _D: *const c_void,
    _E: *const c_void,
    dataTypeZ: cudaDataType,
    _Z: *const c_void,
    ldz: i64,
    computeType: cudaDataType,
    workspaceInBytesOnDevice: Out<'_, usize>,
    workspaceInBytesOnHost: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    self::params(params)?;
    check(compz, (n, ldz), (dataTypeDE, dataTypeZ, computeType))?;
    areas(n, workspaceInBytesOnDevice, workspaceInBytesOnHost)
}

/// E stays as it is.
///
/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnXstedc(
    handle: cusolverDnHandle_t,
    params: cusolverDnParams_t,
    compz: cusolverEigComp_t,
    n: i64,
    dataTypeDE: cudaDataType,
    D: *mut c_void,
    E: *mut c_void,
    dataTypeZ: cudaDataType,
    Z: *mut c_void,
    ldz: i64,
    computeType: cudaDataType,
    _bufferOnDevice: *mut c_void,
    _workspaceInBytesOnDevice: usize,
    _bufferOnHost: *mut c_void,
    _workspaceInBytesOnHost: usize,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    self::params(params)?;
    let wanted = check(compz, (n, ldz), (dataTypeDE, dataTypeZ, computeType))?;
    typed!(dataTypeZ, T => {
        let d = array(D.cast::<<T as Scalar>::Real>(), n)?;
        let e = array(E.cast::<<T as Scalar>::Real>(), n - 1)?;
        let z = match wanted {
            Wanted::Nothing => None,
            _ => Some(matrix(Z.cast::<T>(), (n, n), ldz)?),
        };
        // SAFETY: the caller's word.
        unsafe {
            context.run(info, move || {
                let vectors = match (wanted, z) {
                    (Wanted::Own, Some(z)) => Tridiagonal::Own(z.matrix),
                    (Wanted::OfZ, Some(z)) => Tridiagonal::Of(z.matrix),
                    _ => Tridiagonal::<T>::None,
                };
                eigen::stedc(n, d.get(), e.get(), vectors)
            })
        }
    })
}
