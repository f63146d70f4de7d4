//! What calls say of a plan, in the widest numbers that any of them has.

use core::ffi::c_int;

use cufft_cpu::{Description, Element, Embedding, Kind, MOST_RANK, Precision};

use crate::types::*;
use crate::{Error, Result};

/// How one side lies in memory.
struct Side {
    embed: Vec<i64>,
    stride: i64,
    distance: i64,
}

/// What a plan is made of: `cufft_cpu::Description` that owns its lists.
pub struct Request {
    n: Vec<i64>,
    input: Option<Side>,
    output: Option<Side>,
    kind: Kind,
    precision: Precision,
    batch: i64,
}

impl Request {
    /// Elements that follow each other.
    pub fn basic(n: &[c_int], type_: cufftType, batch: c_int) -> Result<Request> {
        let (kind, precision) = of_type(type_)?;
        let n = n.iter().map(|&n| n.into()).collect();
        Ok(Request { n, input: None, output: None, kind, precision, batch: batch.into() })
    }

    /// # Safety
    /// Where a list is not NULL, it has `rank` numbers.
    pub unsafe fn many<T: Copy + Into<i64>>(
        rank: c_int,
        n: *const T,
        input: (*const T, T, T),
        output: (*const T, T, T),
        (kind, precision): (Kind, Precision),
        batch: T,
    ) -> Result<Request> {
        let rank = usize::try_from(rank).ok().filter(|rank| (1..=MOST_RANK).contains(rank));
        let rank = rank.ok_or(Error::Value("rank"))?;
        let list = |list: *const T| {
            // SAFETY: the caller's promise.
            (!list.is_null()).then(|| (0..rank).map(|i| unsafe { *list.add(i) }.into()).collect::<Vec<i64>>())
        };
        let side = |(embed, stride, distance): (*const T, T, T)| {
            Some(Side { embed: list(embed)?, stride: stride.into(), distance: distance.into() })
        };
        Ok(Request {
            n: list(n).ok_or(Error::Value("n"))?,
            input: side(input),
            output: side(output),
            kind,
            precision,
            batch: batch.into(),
        })
    }

    pub fn description(&self) -> Description<'_> {
        fn lent(side: &Option<Side>) -> Option<Embedding<'_>> {
            let side = side.as_ref()?;
            Some(Embedding { embed: &side.embed, stride: side.stride, distance: side.distance })
        }
        Description {
            n: &self.n,
            input: lent(&self.input),
            output: lent(&self.output),
            kind: self.kind,
            precision: self.precision,
            batch: self.batch,
        }
    }
}

pub fn of_type(type_: cufftType) -> Result<(Kind, Precision)> {
    Ok(match type_ {
        cufftType::CUFFT_C2C => (Kind::C2C, Precision::Single),
        cufftType::CUFFT_R2C => (Kind::R2C, Precision::Single),
        cufftType::CUFFT_C2R => (Kind::C2R, Precision::Single),
        cufftType::CUFFT_Z2Z => (Kind::C2C, Precision::Double),
        cufftType::CUFFT_D2Z => (Kind::R2C, Precision::Double),
        cufftType::CUFFT_Z2D => (Kind::C2R, Precision::Double),
        _ => return Err(Error::Type("there is no such cufftType")),
    })
}

/// What three of CUDA's types ask for together.
pub fn of_types(
    input: cudaDataType,
    output: cudaDataType,
    execution: cudaDataType,
) -> Result<(Kind, Precision)> {
    Ok(Kind::of(element(input)?, element(output)?, element(execution)?)?)
}

fn element(ty: cudaDataType) -> Result<Element> {
    let (complex, precision) = match ty {
        cudaDataType::CUDA_R_16F => (false, Precision::Half),
        cudaDataType::CUDA_C_16F => (true, Precision::Half),
        cudaDataType::CUDA_R_16BF => (false, Precision::Bfloat),
        cudaDataType::CUDA_C_16BF => (true, Precision::Bfloat),
        cudaDataType::CUDA_R_32F => (false, Precision::Single),
        cudaDataType::CUDA_C_32F => (true, Precision::Single),
        cudaDataType::CUDA_R_64F => (false, Precision::Double),
        cudaDataType::CUDA_C_64F => (true, Precision::Double),
        _ => return Err(Error::Type("there are no transforms of this cudaDataType")),
    };
    Ok(Element { complex, precision })
}
