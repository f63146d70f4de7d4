//! Singular values. Source: cuSOLVER manual, `gesvd` and `gesvdaStridedBatched`.

use core::ffi::{c_int, c_schar};

use border::Out;
use cusolver_cpu::svd::{self, Wanted};
use cusolver_cpu::{Field, Matrix};

use crate::Error;
use crate::Result;
use crate::arguments::{Given, area, array, arrays, matrix, size, strided, vectors};
use crate::error::require;
use crate::handle::computing;
use crate::types::*;

/// What a job's letter asks for, and where it goes: `many` columns or rows of vectors of all.
fn wanted<T: Field>(job: c_schar, all: Matrix<T>) -> Result<Wanted<T>> {
    match job as u8 {
        b'N' => Ok(Wanted::None),
        b'S' => Ok(Wanted::Some(all)),
        b'A' => Ok(Wanted::All(all)),
        b'O' => Ok(Wanted::InPlace),
        _ => Err(Error::InvalidValue("there is no such job")),
    }
}

pub(super) fn check_jobs(jobu: c_schar, jobvt: c_schar) -> Result {
    let known = |job: c_schar| matches!(job as u8, b'A' | b'S' | b'O' | b'N');
    require(known(jobu) && known(jobvt), "there is no such job")?;
    require((jobu as u8, jobvt as u8) != (b'O', b'O'), "both U and V in A's place")
}

/// The work of `gesvd`; matrices that are wide are not supported, as the manual has it.
///
/// # Safety
/// The arrays are there whenever the work runs.
pub(super) unsafe fn singular<T: Field>(
    (jobu, jobvt): (c_schar, c_schar),
    a: Given<T>,
    s: *mut T::Real,
    (u, ldu): (*mut T, i64),
    (vt, ldvt): (*mut T, i64),
) -> Result<impl Fn() -> i64> {
    check_jobs(jobu, jobvt)?;
    let (m, n) = (a.rows, a.columns);
    require(m >= n, "gesvd: not m >= n")?;
    require(ldu >= 1 && ldvt >= 1, "a leading dimension is not positive")?;
    let s = array(s, n)?;
    let (mut u, mut vt) = (Matrix::new(u, ldu), Matrix::new(vt, ldvt));
    let (to_u, to_vt) = (wanted(jobu, u)?, wanted(jobvt, vt)?);
    match to_u {
        Wanted::Some(_) => u = matrix(u.start(), (m, n), ldu)?.matrix,
        Wanted::All(_) => u = matrix(u.start(), (m, m), ldu)?.matrix,
        Wanted::None | Wanted::InPlace => {}
    }
    if let Wanted::Some(_) | Wanted::All(_) = to_vt {
        vt = matrix(vt.start(), (n, n), ldvt)?.matrix;
    }
    let (in_place_u, in_place_vt) = (matches!(to_u, Wanted::InPlace), matches!(to_vt, Wanted::InPlace));
    // SAFETY: the caller's word.
    Ok(move || unsafe {
        let to = |job: c_schar, in_place: bool, to: Matrix<T>| match job as u8 {
            _ if in_place => Wanted::InPlace,
            b'S' => Wanted::Some(to),
            b'A' => Wanted::All(to),
            _ => Wanted::None,
        };
        let (to_u, to_vt) = (to(jobu, in_place_u, u), to(jobvt, in_place_vt, vt));
        svd::gesvd(m, n, a.matrix, s.get(), to_u, to_vt)
    })
}

pub fn cusolverDnTgesvd_bufferSize(
    handle: cusolverDnHandle_t,
    m: c_int,
    n: c_int,
    lwork: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    require(n >= 0 && m >= n, "gesvd: not m >= n >= 0")?;
    lwork.write(area(m.into()));
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnTgesvd<T: Field>(
    handle: cusolverDnHandle_t,
    jobu: c_schar,
    jobvt: c_schar,
    m: c_int,
    n: c_int,
    A: *mut T,
    lda: c_int,
    S: *mut T::Real,
    U: *mut T,
    ldu: c_int,
    VT: *mut T,
    ldvt: c_int,
    _work: *mut T,
    lwork: c_int,
    _rwork: *mut T::Real,
    info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let a = matrix(A, (m, n), lda)?;
    // SAFETY: the caller's word.
    unsafe { context.run(info, singular((jobu, jobvt), a, S, (U, ldu.into()), (VT, ldvt.into()))?) }
}

fn check_strided(rank: c_int, (m, n): (c_int, c_int), batch: c_int) -> Result<i64> {
    require(n >= 0 && m >= n, "gesvda: not m >= n >= 0")?;
    require(rank >= 0 && rank <= n, "gesvda: not 0 <= rank <= n")?;
    size(batch)
}

pub fn cusolverDnTgesvdaStridedBatched_bufferSize<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    rank: c_int,
    m: c_int,
    n: c_int,
    _d_A: *const T,
    lda: c_int,
    _strideA: i64,
    _d_S: *const T::Real,
    _strideS: i64,
    _d_U: *const T,
    ldu: c_int,
    _strideU: i64,
    _d_V: *const T,
    ldv: c_int,
    _strideV: i64,
    lwork: Out<'_, c_int>,
    batchSize: c_int,
) -> Result {
    computing(handle)?;
    let wanted = vectors(jobz)?;
    check_strided(rank, (m, n), batchSize)?;
    require(lda >= m.max(1), "lda is too small")?;
    require(!wanted || ldu >= m.max(1) && ldv >= n.max(1), "ldu or ldv is too small")?;
    lwork.write(area(m.into()));
    Ok(())
}

/// The norms of what is left go to the host, for which the call waits where they are asked for.
///
/// # Safety
/// As [`cusolverDnTgesvd`].
pub unsafe fn cusolverDnTgesvdaStridedBatched<T: Field>(
    handle: cusolverDnHandle_t,
    jobz: cusolverEigMode_t,
    rank: c_int,
    m: c_int,
    n: c_int,
    d_A: *const T,
    lda: c_int,
    strideA: i64,
    d_S: *mut T::Real,
    strideS: i64,
    d_U: *mut T,
    ldu: c_int,
    strideU: i64,
    d_V: *mut T,
    ldv: c_int,
    strideV: i64,
    _d_work: *mut T,
    lwork: c_int,
    d_info: *mut c_int,
    h_R_nrmF: *mut f64,
    batchSize: c_int,
) -> Result {
    let context = computing(handle)?;
    size(lwork)?;
    let wanted = vectors(jobz)?;
    let count = check_strided(rank, (m, n), batchSize)?;
    let given = |at: *const T| if count == 0 { core::ptr::dangling() } else { at };
    let a = matrix(given(d_A), (m, n), lda)?;
    let made = match wanted {
        true => Some((matrix(given(d_U), (m, rank), ldu)?, matrix(given(d_V), (n, rank), ldv)?)),
        false => None,
    };
    let tells = !h_R_nrmF.is_null() && count > 0;
    let rank = i64::from(rank);
    strided(d_A, (m.into(), n.into(), lda.into()), count, strideA)?;
    if wanted {
        strided(d_U, (m.into(), rank, ldu.into()), count, strideU)?;
        strided(d_V, (n.into(), rank, ldv.into()), count, strideV)?;
    }
    let (s, infos) = (arrays(d_S, rank, count, strideS)?, array(d_info, count)?);
    let norms = array(h_R_nrmF, if tells { count } else { 0 })?;
    context.enqueue(move || {
        cusolver_cpu::each(count, |number| {
            let nth = |of: Given<T>, stride: i64| {
                let start = of.matrix.start().wrapping_offset((number * stride) as isize);
                Matrix::new(start, of.matrix.ld())
            };
            let made = made.map(|(u, v)| (nth(u, strideU), nth(v, strideV)));
            // SAFETY: the caller's word; a matrix for each call.
            unsafe {
                let s = s.get().wrapping_offset((number * strideS) as isize);
                let (info, norm) = svd::gesvda(rank, a.rows, a.columns, nth(a, strideA), s, made);
                infos.get().offset(number as isize).write(info as c_int);
                if tells {
                    norms.get().offset(number as isize).write(norm);
                }
            }
        });
    })?;
    if tells { context.deliver() } else { Ok(()) }
}
