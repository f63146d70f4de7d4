//! Where memory is or shall be: on a device, or the host's.

use cuda_abi::{CUdevice, CUmemLocation, CUmemLocationType};

use super::Device;
use crate::{Error, Result};

/// The number of a location's device; none is the host. `parameter` is what holds a location of no known type.
pub fn number(location: &CUmemLocation, parameter: &'static str) -> Result<Option<CUdevice>> {
    match location.type_ {
        // SAFETY: a device location has its number in this member.
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => Ok(Some(unsafe { location.__bindgen_anon_1.id })),
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(None),
        _ => Err(Error::InvalidValue(parameter)),
    }
}

/// A location's device, for calls that cannot do `of_host`.
pub fn device(
    location: &CUmemLocation,
    parameter: &'static str,
    of_host: &'static str,
) -> Result<&'static Device> {
    number(location, parameter)?.map_or(Err(Error::NotSupported(of_host)), Device::get)
}
