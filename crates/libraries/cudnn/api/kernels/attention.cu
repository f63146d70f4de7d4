// What attention does with scores between its products: a result is a query of a head. The names and meanings are those of
// crates/libraries/cudnn/cpu/src/attention.rs.

#include "rows.cuh"

// Whether the query is there, and how many keys are: tensors `first` and the next have lengths of queries and keys, if they are there.
static __device__ bool lengths(const Rows &how, int first, u32 query, i64 queries_at, i64 keys_at, u32 *keys)
{
    const Tensor &of_queries = how.tensors[first], &of_keys = how.tensors[first + 1];
    *keys = how.inner.count;
    if (of_queries.kind == NONE)
        return true;
    float most = load(of_keys, keys_at);
    *keys = most <= 0.0f ? 0 : most < (float)*keys ? (u32)most : *keys;
    return (float)query < load(of_queries, queries_at);
}

// Tensor 0: scores, which become chances. The logarithm of the sum, the largest and the sum go to tensors 1, 2 and 3; tensor 4 is a score
// that has no key; 5 and 6 are lengths. Numbers: a factor of the logarithm, how many queries a head has.
extern "C" __global__ void attend(Rows how)
{
    const Tensor *t = how.tensors;
    FOR_RESULTS(how, number)
    {
        Offsets<7> first = offsets<7, false>(how.outer, t, (u32)number);
        u32 keys, query = (u32)number % (u32)how.numbers[1];
        bool is_there = lengths(how, 5, query, first.of[5], first.of[6], &keys);
        // The keys follow each other.
        float *scores = (float *)t[0].at + first.of[0];
        double sink = t[4].kind == NONE ? -infinity() : (double)load(t[4], first.of[4]), own = -infinity();
        for (u32 place = threadIdx.x; is_there && place < keys; place += THREADS)
            own = Largest::of(own, scores[place]);
        double most = Largest::of(together<Largest>(own), sink);
        is_there = is_there && keys > 0 && most != -infinity();
        own = 0.0;
        for (u32 place = threadIdx.x; is_there && place < keys; place += THREADS)
            own += power(scores[place] - (float)most);
        double sum = together<Add>(own);
        if (is_there && t[4].kind != NONE)
            sum += power((float)(sink - most));
        for (u64 place = threadIdx.x; place < how.inner.count; place += THREADS)
            scores[place] = is_there && place < keys ? (float)(power(scores[place] - (float)most) / sum) : 0.0f;
        if (threadIdx.x == 0) {
            if (t[1].kind != NONE)
                write(t[1], first.of[1], is_there ? (most + logarithm_of_any(sum)) * how.numbers[0] : -infinity());
            if (t[2].kind != NONE)
                write(t[2], first.of[2], is_there ? most : -infinity());
            if (t[3].kind != NONE)
                write(t[3], first.of[3], is_there ? sum : 0.0);
        }
        __syncthreads();
    }
}

// Tensor 0: scores, which become chances by the statistics in tensor 2. Tensor 1: the gradients of chances, which become those of scores;
// tensor 3 gets the chances' mean gradient, which is the sum of the products of results and their gradients, tensors 4 and 5 (the number
// says how many there are, and their own inner places go along them). 6 and 7 are lengths.
extern "C" __global__ void attend_backward(Rows how)
{
    const Tensor *t = how.tensors;
    u32 width = (u32)how.numbers[0];
    FOR_RESULTS(how, number)
    {
        Offsets<8> first = offsets<8, false>(how.outer, t, (u32)number);
        u32 keys, query = (u32)number % (u32)how.numbers[1];
        bool is_there = lengths(how, 6, query, first.of[6], first.of[7], &keys) && keys > 0;
        double own = 0.0;
        for (u32 place = threadIdx.x; is_there && place < width; place += THREADS)
            own += (double)load(t[4], first.of[4] + place * t[4].inner[0]) * load(t[5], first.of[5] + place * t[5].inner[0]);
        double mean = together<Add>(own);
        float statistic = is_there ? load(t[2], first.of[2]) : 0.0f;
        float *scores = (float *)t[0].at + first.of[0], *slopes = (float *)t[1].at + first.of[1];
        for (u64 place = threadIdx.x; place < how.inner.count; place += THREADS) {
            bool counts = is_there && place < keys;
            float chance = counts ? power(scores[place] - statistic) : 0.0f;
            scores[place] = chance;
            slopes[place] = counts ? (float)(chance * (slopes[place] - mean)) : 0.0f;
        }
        if (threadIdx.x == 0)
            write(t[3], first.of[3], mean);
        __syncthreads();
    }
}

// The gradient of a head's score without a key, tensor 3: of that score, the statistics of all its queries and their means, tensors 0 to 2.
extern "C" __global__ void sink_backward(Rows how)
{
    const Tensor *t = how.tensors;
    FOR_RESULTS(how, number)
    {
        Offsets<4> first = offsets<4, false>(how.outer, t, (u32)number);
        float sink = load(t[0], first.of[0]);
        double own = 0.0;
        FOR_ELEMENTS(how, place)
        {
            Offsets<3> at = offsets<3, true>(how.inner, t, (u32)place);
            float statistic = load(t[1], first.of[1] + at.of[1]);
            // A query that is not there gives it nothing.
            if ((double)statistic > -infinity())
                own -= power(sink - statistic) * (double)load(t[2], first.of[2] + at.of[2]);
        }
        double sum = together<Add>(own);
        if (threadIdx.x == 0)
            blend(how, t[3], first.of[3], sum);
        __syncthreads();
    }
}
