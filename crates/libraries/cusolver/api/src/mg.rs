//! cuSOLVERMg: the devices of a handle, grids of them, and matrices whose columns lie in blocks on the devices of a grid, in turns.
//!
//! A routine collects the columns in the host's memory, where `cusolver_cpu` computes, and puts back what it has made. The copies are the
//! driver's synchronous ones, in the context of each device: behind what its default stream has to do, and done when the call comes
//! back. Source: cuSOLVER manual, "cuSolverMG".

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use cuda_abi::{CUDA_MEMCPY2D, CUcontext, CUmemorytype};
use cusolver_cpu::Scalar;
use kit::Registry;
use kit::driver::{self, Number, check, driver};
use kit::engine::of_current_device;
use num_traits::Zero;
use parking_lot::Mutex;

use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

/// The manual: up to so many logical devices, of which several may be one and the same.
const MOST_DEVICES: i32 = 32;

/// The devices that were selected.
static HANDLES: Registry<Mutex<Vec<c_int>>> = Registry::new();
static GRIDS: Registry<Grid> = Registry::new();
static LAYOUTS: Registry<Layout> = Registry::new();

/// One row of devices.
struct Grid {
    numbers: Vec<c_int>,
    contexts: Vec<Number<CUcontext>>,
}

// SAFETY: contexts are the driver's numbers, good on every thread.
unsafe impl Send for Grid {}
// SAFETY: as above.
unsafe impl Sync for Grid {}

/// How a matrix is distributed: each block of columns is on the next device, and the blocks of a device follow each other there, with as
/// many rows as the matrix has.
struct Layout {
    rows: i64,
    columns: i64,
    block: i64,
    ty: cudaDataType,
    grid: Arc<Grid>,
}

pub fn create() -> Result<cusolverMgHandle_t> {
    driver()?;
    Ok(HANDLES.add(Mutex::default()))
}

pub fn destroy(handle: cusolverMgHandle_t) -> Result {
    HANDLES.remove(handle)?;
    Ok(())
}

/// # Safety
/// NULL, or so many numbers.
unsafe fn devices(count: i32, at: *const c_int) -> Result<Vec<c_int>> {
    require((1..=MOST_DEVICES).contains(&count), "not 1 to 32 devices")?;
    require(!at.is_null(), "the list of devices is NULL")?;
    // SAFETY: the caller's word.
    let numbers = unsafe { std::slice::from_raw_parts(at, count as usize) }.to_vec();
    let mut n_devices = 0;
    // SAFETY: the place outlives the call.
    check("cuDeviceGetCount", unsafe { (driver()?.cuDeviceGetCount)(&mut n_devices) })?;
    require(numbers.iter().all(|number| (0..n_devices).contains(number)), "there is no such device")?;
    Ok(numbers)
}

/// # Safety
/// `at` is NULL, or has `count` numbers.
pub unsafe fn select(handle: cusolverMgHandle_t, count: c_int, at: *const c_int) -> Result {
    let selected = HANDLES.get(handle)?;
    // SAFETY: the caller's word.
    let numbers = unsafe { devices(count, at)? };
    for &number in &numbers {
        // The variable may leave out what a device is.
        driver::inside(driver::primary_context(number)?, || {
            Ok::<_, Error>(of_current_device(&config::get().solver)?)
        })?;
    }
    *selected.lock() = numbers;
    Ok(())
}

/// # Safety
/// `at` is NULL, or has as many numbers as there are columns.
pub unsafe fn create_grid(
    (rows, columns): (i32, i32),
    at: *const i32,
    mapping: cusolverMgGridMapping_t,
) -> Result<cudaLibMgGrid_t> {
    require(rows == 1, "a grid of other than one row")?;
    // In one row both orders are the same.
    require(
        mapping <= cusolverMgGridMapping_t::CUDALIBMG_GRID_MAPPING_ROW_MAJOR,
        "there is no such mapping",
    )?;
    // SAFETY: the caller's word.
    let numbers = unsafe { devices(columns, at)? };
    let contexts =
        numbers.iter().map(|&number| Ok(driver::primary_context(number)?)).collect::<Result<_>>()?;
    Ok(GRIDS.add(Grid { numbers, contexts }))
}

pub fn destroy_grid(grid: cudaLibMgGrid_t) -> Result {
    GRIDS.remove(grid).map(drop).map_err(|_| Error::InvalidValue("there is no such grid"))
}

pub fn create_layout(
    (rows, columns): (i64, i64),
    (row_block, block): (i64, i64),
    ty: cudaDataType,
    grid: cudaLibMgGrid_t,
) -> Result<cudaLibMgMatrixDesc_t> {
    let grid = GRIDS.get(grid).map_err(|_| Error::InvalidValue("there is no such grid"))?;
    require(rows >= 0 && columns >= 0 && block >= 0, "a size is negative")?;
    require(row_block == rows, "blocks of other than all rows")?;
    require(block > 0 || columns == 0, "blocks without a column")?;
    element_bytes(ty)?;
    Ok(LAYOUTS.add(Layout { rows, columns, block: block.max(1), ty, grid }))
}

pub fn destroy_layout(layout: cudaLibMgMatrixDesc_t) -> Result {
    LAYOUTS.remove(layout).map(drop).map_err(|_| Error::InvalidValue("there is no such descriptor"))
}

fn element_bytes(ty: cudaDataType) -> Result<usize> {
    match ty {
        cudaDataType::CUDA_R_32F => Ok(4),
        cudaDataType::CUDA_R_64F | cudaDataType::CUDA_C_32F => Ok(8),
        cudaDataType::CUDA_C_64F => Ok(16),
        _ => Err(Error::InvalidValue("a type other than float, double and their complex ones")),
    }
}

/// What a call says of a distributed matrix, without its memory.
#[derive(Clone, Copy)]
pub struct Said {
    pub rows: c_int,
    pub columns: c_int,
    /// Where the part that is meant begins, counted from 1.
    pub first: (c_int, c_int),
    pub descriptor: cudaLibMgMatrixDesc_t,
}

/// The part of a distributed matrix that a call is about.
pub struct Meant {
    layout: Arc<Layout>,
    pub rows: i64,
    pub columns: i64,
}

/// Looks at what a call says of a matrix: its part begins with the first row and column, and its devices are the handle's.
pub fn meant(handle: cusolverMgHandle_t, said: Said, ty: cudaDataType) -> Result<Meant> {
    let selected = HANDLES.get(handle)?;
    let layout =
        LAYOUTS.get(said.descriptor).map_err(|_| Error::InvalidValue("there is no such descriptor"))?;
    let (rows, columns) = (i64::from(said.rows), i64::from(said.columns));
    require(rows >= 0 && columns >= 0, "a size is negative")?;
    require(said.first == (1, 1), "a part that does not begin with the first row and column")?;
    require(rows <= layout.rows && columns <= layout.columns, "a part that is larger than its matrix")?;
    require(layout.ty == ty, "types that do not go together")?;
    let (selected, numbers) = (selected.lock(), &layout.grid.numbers);
    let are_selected =
        selected.len() == numbers.len() && numbers.iter().all(|number| selected.contains(number));
    require(are_selected, "a grid of other devices than the handle's")?;
    drop(selected);
    Ok(Meant { layout, rows, columns })
}

impl Meant {
    /// With the memory of each device.
    ///
    /// # Safety
    /// `list` is NULL, or has an address for each device of the grid, where the device's columns are.
    pub unsafe fn at<T: Scalar>(&self, list: *const *mut T) -> Result<Columns<T>> {
        // SAFETY: the caller's word.
        unsafe { Columns::new(&self.layout, list, (self.rows, self.columns), self.layout.rows) }
    }

    /// The row numbers that a factorization has for each of its first columns, which lie as those do; none where there is no list.
    ///
    /// # Safety
    /// As [`at`](Self::at), with one number for each column.
    pub unsafe fn pivots(&self, list: *const *mut c_int) -> Result<Option<Columns<c_int>>> {
        if list.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's word.
        unsafe { Columns::new(&self.layout, list, (1, self.rows.min(self.columns)), 1).map(Some) }
    }
}

/// Columns on the devices of a grid.
pub struct Columns<T> {
    layout: Arc<Layout>,
    /// Of each device.
    parts: Vec<*mut T>,
    rows: i64,
    columns: i64,
    ld: i64,
}

/// Columns that lie together on one device.
struct Block {
    device: usize,
    /// In the matrix, and among those of the device.
    first: i64,
    local: i64,
    count: i64,
}

impl<T: Copy + Zero> Columns<T> {
    unsafe fn new(
        layout: &Arc<Layout>,
        list: *const *mut T,
        (rows, columns): (i64, i64),
        ld: i64,
    ) -> Result<Columns<T>> {
        let mut all = Columns { layout: Arc::clone(layout), parts: Vec::new(), rows, columns, ld };
        if rows == 0 || columns == 0 {
            all.columns = 0;
            return Ok(all);
        }
        require(!list.is_null(), "the list of the devices' columns is NULL")?;
        // SAFETY: the caller's word.
        all.parts = unsafe { std::slice::from_raw_parts(list, layout.grid.contexts.len()) }.to_vec();
        require(all.blocks().all(|block| !all.parts[block.device].is_null()), "a device's columns are NULL")?;
        Ok(all)
    }

    fn blocks(&self) -> impl Iterator<Item = Block> {
        let (columns, block) = (self.columns, self.layout.block);
        let n_devices = self.layout.grid.contexts.len() as i64;
        (0..).map(move |number| (number, number * block)).take_while(move |(_, first)| *first < columns).map(
            move |(number, first)| Block {
                device: (number % n_devices) as usize,
                first,
                local: number / n_devices * block,
                count: block.min(columns - first),
            },
        )
    }

    /// All of them, without gaps.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let count = usize::try_from(self.rows * self.columns).unwrap_or(usize::MAX);
        values.try_reserve_exact(count).map_err(|_| Error::NoMemory)?;
        values.resize(count, T::zero());
        let start = values.as_mut_ptr();
        self.copy(|copy, host, device| {
            (copy.srcMemoryType, copy.srcDevice, copy.srcPitch) =
                (CUmemorytype::CU_MEMORYTYPE_UNIFIED, device.0, device.1);
            (copy.dstMemoryType, copy.dstPitch) = (CUmemorytype::CU_MEMORYTYPE_HOST, host.1);
            copy.dstHost = start.wrapping_add(host.0).cast();
        })?;
        Ok(values)
    }

    /// Puts all of them back.
    pub fn write(&self, values: &[T]) -> Result {
        self.copy(|copy, host, device| {
            (copy.srcMemoryType, copy.srcPitch) = (CUmemorytype::CU_MEMORYTYPE_HOST, host.1);
            copy.srcHost = values[host.0..].as_ptr().cast::<c_void>();
            (copy.dstMemoryType, copy.dstDevice, copy.dstPitch) =
                (CUmemorytype::CU_MEMORYTYPE_UNIFIED, device.0, device.1);
        })
    }

    /// Copies each block; `ends` writes both ends, of which it is told where they begin (an element, an address) and how far it is from
    /// a column to the next one.
    fn copy(&self, ends: impl Fn(&mut CUDA_MEMCPY2D, (usize, usize), (u64, usize))) -> Result {
        let driver = driver()?;
        let [column_bytes, pitch_bytes] = [self.rows, self.ld].map(|rows| rows as usize * size_of::<T>());
        for block in self.blocks() {
            let mut copy = CUDA_MEMCPY2D {
                WidthInBytes: column_bytes,
                Height: block.count as usize,
                ..CUDA_MEMCPY2D::default()
            };
            let address = self.parts[block.device].wrapping_offset((block.local * self.ld) as isize);
            let element = (block.first * self.rows) as usize;
            ends(&mut copy, (element, column_bytes), (address.addr() as u64, pitch_bytes));
            driver::inside(self.layout.grid.contexts[block.device], || {
                // SAFETY: the description outlives the call; what is there is the caller's word.
                check("cuMemcpy2D", unsafe { (driver.cuMemcpy2D_v2)(&copy) })
            })?;
        }
        Ok(())
    }
}
