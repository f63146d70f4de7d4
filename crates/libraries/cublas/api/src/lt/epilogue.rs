//! What is done to a product before it is stored: `CUBLASLT_MATMUL_DESC_EPILOGUE` and what belongs to it.

use cublas_cpu::epilogue::{Activation, BiasGradient, Epilogue, Place};
use cublas_cpu::storage::Storage;

use super::descriptor::Descriptor;
use crate::mixed::storage;
use crate::{Error, Result, cudaDataType, require};

// `cublasLtEpilogue_t` is made of these bits.
const DEFAULT: i64 = 1;
const RELU: i64 = 2;
const BIAS: i64 = 4;
const DRELU: i64 = 8;
const BGRAD: i64 = 16;
const GELU: i64 = 32;
const DGELU: i64 = 64;
const AUX: i64 = 128;
const BGRADA: i64 = 256;
const BGRADB: i64 = 512;

/// Every bit: what the CPU's algorithm can do.
pub const ALL: u32 = (2 * BGRADB - 1) as u32;

/// The values of the enum, as the header has them.
const KNOWN: [i64; 17] = [
    0,
    DEFAULT,
    RELU,
    RELU | AUX,
    BIAS,
    RELU | BIAS,
    RELU | AUX | BIAS,
    DRELU | AUX,
    DRELU | AUX | BGRAD,
    GELU,
    GELU | AUX,
    GELU | BIAS,
    GELU | AUX | BIAS,
    DGELU | AUX,
    DGELU | AUX | BGRAD,
    BGRADA,
    BGRADB,
];

/// The steps of a descriptor, with the strides from one product of a batch to the next, in elements.
#[derive(Clone, Copy)]
pub struct Steps {
    epilogue: Epilogue,
    bias_stride: i64,
    auxiliary_stride: i64,
    scale: *const f32,
    auxiliary_scale: *const f32,
    is_relu: bool,
}

/// Of what C and D are stored as.
pub fn of(operation: Descriptor<'_>, c: Storage, d: Storage) -> Result<Steps> {
    let bits = operation.number(7);
    require(KNOWN.contains(&bits), "there is no such epilogue")?;
    let has = |bit: i64| bits & bit != 0;
    let typed = |number: u32, otherwise: Storage| match operation.number(number) {
        -1 => Ok(otherwise),
        set => storage(cudaDataType(set as u32)),
    };
    let bias = Place::new(typed(26, of_bias(c, d))?, operation.pointer::<u8>(8), 0);
    let auxiliary = Place::new(typed(22, d)?, operation.pointer::<u8>(11), operation.number(12));
    require(!(has(BIAS | BGRAD | BGRADA | BGRADB) && bias.at.is_null()), "the epilogue has no bias pointer")?;
    require(!(has(AUX) && auxiliary.at.is_null()), "the epilogue has no auxiliary pointer")?;
    let gradient = match bits {
        _ if has(BGRAD) => Some(BiasGradient::Result),
        BGRADA => Some(BiasGradient::A),
        BGRADB => Some(BiasGradient::B),
        _ => None,
    };
    let activation = match bits {
        _ if has(RELU) => Activation::Relu,
        _ if has(GELU) => Activation::Gelu,
        _ if has(DRELU) => Activation::ReluGradient,
        _ if has(DGELU) => Activation::GeluGradient,
        _ => Activation::None,
    };
    let place = |at: *mut f32| (!at.is_null()).then_some(at);
    let epilogue = Epilogue {
        bias: has(BIAS).then_some(bias),
        activation,
        auxiliary: has(AUX).then_some(auxiliary),
        auxiliary_scale: None,
        auxiliary_largest: place(operation.pointer(24)),
        bias_gradient: gradient.map(|gradient| (gradient, bias)),
        largest: place(operation.pointer(21)),
        scale: None,
    };
    Ok(Steps {
        epilogue,
        bias_stride: operation.number(10),
        auxiliary_stride: operation.number(13),
        scale: operation.pointer(20),
        auxiliary_scale: operation.pointer(23),
        is_relu: has(RELU | DRELU),
    })
}

/// The manual's default of a bias's type.
fn of_bias(c: Storage, d: Storage) -> Storage {
    match (c, d) {
        (Storage::F16, Storage::E4M3 | Storage::E5M2) => Storage::F16,
        (_, Storage::E4M3 | Storage::E5M2) => Storage::BF16,
        (_, Storage::I8) => Storage::F32,
        _ => d,
    }
}

impl Steps {
    pub fn is_none(&self) -> bool {
        self.epilogue.is_none() && self.scale.is_null()
    }

    /// That have an element for each row or column, which a product that is computed transposed would mix up.
    pub fn has_vectors(&self) -> bool {
        self.epilogue.bias.is_some()
            || self.epilogue.auxiliary.is_some()
            || self.epilogue.bias_gradient.is_some()
    }

    /// Before the products of a batch raise them.
    ///
    /// # Safety
    /// The pointers of the descriptor are device memory.
    pub unsafe fn forget_largest(&self) {
        for at in [self.epilogue.largest, self.epilogue.auxiliary_largest].into_iter().flatten() {
            // SAFETY: the caller's promise.
            unsafe { at.write(0.0) };
        }
    }

    /// For one product of a batch, when it runs.
    ///
    /// # Safety
    /// The pointers of the descriptor are device memory.
    pub unsafe fn for_product(&self, index: i64) -> Epilogue {
        let moved = |place: Place, elements: i64, bytes: isize| Place {
            at: place.at.wrapping_offset((index * elements) as isize * bytes),
            ..place
        };
        let element = |place: Place| place.storage.size() as isize;
        // SAFETY: the caller's promise.
        let read = |at: *const f32| (!at.is_null()).then(|| unsafe { at.read_unaligned() });
        let auxiliary = self.epilogue.auxiliary.map(|place| match self.is_relu {
            // Bits.
            true => moved(place, self.auxiliary_stride / 8, 1),
            false => moved(place, self.auxiliary_stride, element(place)),
        });
        Epilogue {
            bias: self.epilogue.bias.map(|place| moved(place, self.bias_stride, element(place))),
            auxiliary,
            bias_gradient: self
                .epilogue
                .bias_gradient
                .map(|(gradient, place)| (gradient, moved(place, self.bias_stride, element(place)))),
            auxiliary_scale: read(self.auxiliary_scale),
            scale: read(self.scale),
            ..self.epilogue
        }
    }
}

/// Modes of scale factors other than one number for the whole matrix.
pub fn refuse_other_scales(operation: Descriptor<'_>) -> Result {
    let modes = [31, 32, 33, 34, 35, 37];
    if modes.iter().any(|&mode| operation.number(mode) != 0) || operation.number(36) != 0 {
        return Err(Error::NotSupported("scale factors for blocks or vectors of a matrix"));
    }
    Ok(())
}
