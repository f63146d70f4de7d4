//! The numbers `hipDeviceGetAttribute` understands, as in ROCm 6.4.
//!
//! Measured: numbers are equal in 5.2, 5.7 and 6.4; later versions only append. AMD's own block starts at 10000.

use core::ffi::c_int;

pub type hipDeviceAttribute_t = c_int;

macro_rules! attributes {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: hipDeviceAttribute_t = $value;)*
    };
}

attributes! {
    hipDeviceAttributeEccEnabled                               = 0;
    hipDeviceAttributeAccessPolicyMaxWindowSize                = 1;
    hipDeviceAttributeAsyncEngineCount                         = 2;
    hipDeviceAttributeCanMapHostMemory                         = 3;
    hipDeviceAttributeCanUseHostPointerForRegisteredMem        = 4;
    hipDeviceAttributeClockRate                                = 5;
    hipDeviceAttributeComputeMode                              = 6;
    hipDeviceAttributeComputePreemptionSupported               = 7;
    hipDeviceAttributeConcurrentKernels                        = 8;
    hipDeviceAttributeConcurrentManagedAccess                  = 9;
    hipDeviceAttributeCooperativeLaunch                        = 10;
    hipDeviceAttributeCooperativeMultiDeviceLaunch             = 11;
    hipDeviceAttributeDeviceOverlap                            = 12;
    hipDeviceAttributeDirectManagedMemAccessFromHost           = 13;
    hipDeviceAttributeGlobalL1CacheSupported                   = 14;
    hipDeviceAttributeHostNativeAtomicSupported                = 15;
    hipDeviceAttributeIntegrated                               = 16;
    hipDeviceAttributeIsMultiGpuBoard                          = 17;
    hipDeviceAttributeKernelExecTimeout                        = 18;
    hipDeviceAttributeL2CacheSize                              = 19;
    hipDeviceAttributeLocalL1CacheSupported                    = 20;
    hipDeviceAttributeLuid                                     = 21;
    hipDeviceAttributeLuidDeviceNodeMask                       = 22;
    hipDeviceAttributeComputeCapabilityMajor                   = 23;
    hipDeviceAttributeManagedMemory                            = 24;
    hipDeviceAttributeMaxBlocksPerMultiProcessor               = 25;
    hipDeviceAttributeMaxBlockDimX                             = 26;
    hipDeviceAttributeMaxBlockDimY                             = 27;
    hipDeviceAttributeMaxBlockDimZ                             = 28;
    hipDeviceAttributeMaxGridDimX                              = 29;
    hipDeviceAttributeMaxGridDimY                              = 30;
    hipDeviceAttributeMaxGridDimZ                              = 31;
    hipDeviceAttributeMaxSurface1D                             = 32;
    hipDeviceAttributeMaxSurface1DLayered                      = 33;
    hipDeviceAttributeMaxSurface2D                             = 34;
    hipDeviceAttributeMaxSurface2DLayered                      = 35;
    hipDeviceAttributeMaxSurface3D                             = 36;
    hipDeviceAttributeMaxSurfaceCubemap                        = 37;
    hipDeviceAttributeMaxSurfaceCubemapLayered                 = 38;
    hipDeviceAttributeMaxTexture1DWidth                        = 39;
    hipDeviceAttributeMaxTexture1DLayered                      = 40;
    hipDeviceAttributeMaxTexture1DLinear                       = 41;
    hipDeviceAttributeMaxTexture1DMipmap                       = 42;
    hipDeviceAttributeMaxTexture2DWidth                        = 43;
    hipDeviceAttributeMaxTexture2DHeight                       = 44;
    hipDeviceAttributeMaxTexture2DGather                       = 45;
    hipDeviceAttributeMaxTexture2DLayered                      = 46;
    hipDeviceAttributeMaxTexture2DLinear                       = 47;
    hipDeviceAttributeMaxTexture2DMipmap                       = 48;
    hipDeviceAttributeMaxTexture3DWidth                        = 49;
    hipDeviceAttributeMaxTexture3DHeight                       = 50;
    hipDeviceAttributeMaxTexture3DDepth                        = 51;
    hipDeviceAttributeMaxTexture3DAlt                          = 52;
    hipDeviceAttributeMaxTextureCubemap                        = 53;
    hipDeviceAttributeMaxTextureCubemapLayered                 = 54;
    hipDeviceAttributeMaxThreadsDim                            = 55;
    hipDeviceAttributeMaxThreadsPerBlock                       = 56;
    hipDeviceAttributeMaxThreadsPerMultiProcessor              = 57;
    hipDeviceAttributeMaxPitch                                 = 58;
    hipDeviceAttributeMemoryBusWidth                           = 59;
    hipDeviceAttributeMemoryClockRate                          = 60;
    hipDeviceAttributeComputeCapabilityMinor                   = 61;
    hipDeviceAttributeMultiGpuBoardGroupID                     = 62;
    hipDeviceAttributeMultiprocessorCount                      = 63;
    hipDeviceAttributePageableMemoryAccess                     = 65;
    hipDeviceAttributePageableMemoryAccessUsesHostPageTables   = 66;
    hipDeviceAttributePciBusId                                 = 67;
    hipDeviceAttributePciDeviceId                              = 68;
    hipDeviceAttributePciDomainID                              = 69;
    hipDeviceAttributePersistingL2CacheMaxSize                 = 70;
    hipDeviceAttributeMaxRegistersPerBlock                     = 71;
    hipDeviceAttributeMaxRegistersPerMultiprocessor            = 72;
    hipDeviceAttributeReservedSharedMemPerBlock                = 73;
    hipDeviceAttributeMaxSharedMemoryPerBlock                  = 74;
    hipDeviceAttributeSharedMemPerBlockOptin                   = 75;
    hipDeviceAttributeSharedMemPerMultiprocessor               = 76;
    hipDeviceAttributeSingleToDoublePrecisionPerfRatio         = 77;
    hipDeviceAttributeStreamPrioritiesSupported                = 78;
    hipDeviceAttributeSurfaceAlignment                         = 79;
    hipDeviceAttributeTccDriver                                = 80;
    hipDeviceAttributeTextureAlignment                         = 81;
    hipDeviceAttributeTexturePitchAlignment                    = 82;
    hipDeviceAttributeTotalConstantMemory                      = 83;
    hipDeviceAttributeTotalGlobalMem                           = 84;
    hipDeviceAttributeUnifiedAddressing                        = 85;
    hipDeviceAttributeWarpSize                                 = 87;
    hipDeviceAttributeMemoryPoolsSupported                     = 88;
    hipDeviceAttributeVirtualMemoryManagementSupported         = 89;
    hipDeviceAttributeHostRegisterSupported                    = 90;
    hipDeviceAttributeMemoryPoolSupportedHandleTypes           = 91;
    hipDeviceAttributeClockInstructionRate                     = 10000;
    hipDeviceAttributeMaxSharedMemoryPerMultiprocessor         = 10002;
    hipDeviceAttributeHdpMemFlushCntl                          = 10005;
    hipDeviceAttributeHdpRegFlushCntl                          = 10006;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc      = 10007;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim   = 10008;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim  = 10009;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem = 10010;
    hipDeviceAttributeIsLargeBar                               = 10011;
    hipDeviceAttributeAsicRevision                             = 10012;
    hipDeviceAttributeCanUseStreamWaitValue                    = 10013;
    hipDeviceAttributeImageSupport                             = 10014;
    hipDeviceAttributePhysicalMultiProcessorCount              = 10015;
    hipDeviceAttributeFineGrainSupport                         = 10016;
    hipDeviceAttributeWallClockRate                            = 10017;
}

// The numbers read from the built libraries (shared/facts/amd.md §4).
const _: () = {
    assert!(hipDeviceAttributeMaxThreadsPerBlock == 56);
    assert!(hipDeviceAttributeWarpSize == 87);
    assert!(hipDeviceAttributeComputeCapabilityMajor == 23);
    assert!(hipDeviceAttributeMultiprocessorCount == 63);
    assert!(hipDeviceAttributeMaxSharedMemoryPerBlock == 74);
    assert!(hipDeviceAttributePciBusId == 67);
    assert!(hipDeviceAttributeClockRate == 5);
    assert!(hipDeviceAttributeMaxRegistersPerBlock == 71);
    assert!(hipDeviceAttributeClockInstructionRate == 10000);
};
