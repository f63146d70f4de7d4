// The size of every row's work: one place for CUDA C++, C and OpenCL C.
#ifndef PEERS_SIZES_H
#define PEERS_SIZES_H

#define STREAM_N (16 * 1024 * 1024)  // vecadd, saxpy, both reductions, scan: 32-bit elements
#define SAXPY_A 2.0f
#define BLOCK 256                    // threads of a one-dimensional block

#define GEMM_N 1024                  // square matrices
#define GEMM_TILE 16                 // one thread per element of a tile
#define GEMM_BLOCK 64                // register-blocked: 16x16 threads, 4x4 elements each
#define GEMM_STEP 16

#define BODIES 8192
#define SOFTENING 0.01f

#define OPTIONS (4 * 1024 * 1024)
#define RISKFREE 0.02f
#define VOLATILITY 0.30f

#define GRID_N 4096                  // stencil and transpose: a square grid
#define TRANSPOSE_TILE 32            // 32x8 threads

#define IMAGE_N 2048                 // the textured rows: a square image of that many elements a side, and as many samples
// Where a sample lies, the image scaled and turned: multiples of 1/16, so that weights and sums are exact.
#define IMAGE_X(x, y) ((x) * 0.75f + (y) * 0.125f + 0.25f)
#define IMAGE_Y(x, y) ((y) * 0.875f - (x) * 0.0625f + 0.375f)
#define VOLUME_N 128                 // and a cube, of which 4 M samples are taken: 256 × 256 × 64, normalised
#define VOLUME_SAMPLES (256 * 256 * 64)

#define HISTOGRAM_BYTES (16 * 1024 * 1024)
#define HISTOGRAM_BLOCKS 256

#define MANDELBROT_N 1024
#define MANDELBROT_LIMIT 256

#define SCAN_ITEMS 8                 // of each thread
#define SCAN_TILE (BLOCK * SCAN_ITEMS)
#define SCAN_TILES (STREAM_N / SCAN_TILE)
// A tile's state in one word: two bits say what the other thirty are.
#define SCAN_SUM 0x40000000u         // the tile's own sum
#define SCAN_PREFIX 0x80000000u      // the sum of all elements up to the tile's end
#define SCAN_VALUE 0x3fffffffu

#define SORT_N (1024 * 1024)
#define SORT_CHUNK 1024              // one block of 512 threads sorts one chunk

#define SPMV_ROWS (1024 * 1024)
#define SPMV_MOST 15                 // entries of a row: 0 to 15

#define MD5_N (4 * 1024 * 1024)      // messages, a block of the hash each
#define SHA256_N (2 * 1024 * 1024)
#define SHA512_N (1024 * 1024)

#define MATVEC_N 4096                // a square matrix, a block of threads a row
#define MATVEC_WARPS 4               // of a block, where the weights are quantised
#define SOFTMAX_ROWS 8192
#define SOFTMAX_COLUMNS 1024
#define SOFTMAX_SCALE 0.125f
#define ATTENTION_HEADS 32           // one query each
#define ATTENTION_KEYS 2048          // of each head
#define ATTENTION_WIDTH 128          // elements of a query, a key and a value; threads of a block
#define ATTENTION_SCALE 0.0883883f   // 1 / sqrt(ATTENTION_WIDTH)

// CUB's algorithms. One segment in eight has up to SEGMENT_LONG keys, the others up to SEGMENT_SHORT.
#define SEGMENTS 4096
#define SEGMENT_SHORT 127
#define SEGMENT_LONG 4095
#define PAIRS_N (1024 * 1024)
#define EVEN_BINS 256                // of equal width, from 0; a sample may lie outside
#define EVEN_UPPER 1024.0f
#define TOP_K 1024                   // of STREAM_N floats

#endif
