// Fused element-wise stages of the V4 layer for training on a CPU, called from kernels.py through
// ctypes.
//
// Every forward function has a backward twin (suffix _grad) that takes what the forward saved. All
// tensors are fp32 and contiguous. T tokens, H hidden, S = 4 residual streams, D head dim, R
// rotated dims. Plain loops; the compiler vectorises them (-O3 -ffast-math -march=native).
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kStreams = 4;
constexpr int kMix = kStreams * (kStreams + 2);  // 24 values per token: pre, post, comb
constexpr int kSquare = kStreams * kStreams;
constexpr int kLanes = 16;  // tokens handled together in the Sinkhorn iteration
constexpr int kMaxIterations = 32;

inline float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// One normalisation of the 4x4 matrices in `c`, along rows (over q) or columns (over j); keeps the
// reciprocal sums.
template <bool kRows>
void Normalize(float (*c)[kLanes], float (*inverse)[kLanes], float eps) {
  for (int a = 0; a < kStreams; ++a) {
    for (int l = 0; l < kLanes; ++l) {
      float sum = eps;
      for (int b = 0; b < kStreams; ++b) sum += c[kRows ? a * kStreams + b : b * kStreams + a][l];
      const float r = 1.0f / sum;
      inverse[a][l] = r;
      for (int b = 0; b < kStreams; ++b) c[kRows ? a * kStreams + b : b * kStreams + a][l] *= r;
    }
  }
}

// Gradient of Normalize: d <- (d - sum(d * c)) * inverse, with c the normalised matrices.
template <bool kRows>
void NormalizeGrad(const float (*c)[kLanes], const float (*inverse)[kLanes], float (*d)[kLanes]) {
  for (int a = 0; a < kStreams; ++a) {
    for (int l = 0; l < kLanes; ++l) {
      float dot = 0;
      for (int b = 0; b < kStreams; ++b) {
        const int i = kRows ? a * kStreams + b : b * kStreams + a;
        dot += d[i][l] * c[i][l];
      }
      for (int b = 0; b < kStreams; ++b) {
        const int i = kRows ? a * kStreams + b : b * kStreams + a;
        d[i][l] = (d[i][l] - dot) * inverse[a][l];
      }
    }
  }
}

struct Sinkhorn {
  float soft[kSquare][kLanes];                   // row softmax, without eps
  float c[2 * kMaxIterations][kSquare][kLanes];  // after each normalisation
  float inverse[2 * kMaxIterations][kStreams][kLanes];
  int steps = 0;

  // z: logits [16][lanes]. The result is c[steps - 1].
  void Forward(const float (*z)[kLanes], int iterations, float eps) {
    for (int j = 0; j < kStreams; ++j) {
      for (int l = 0; l < kLanes; ++l) {
        float top = z[j * 4][l];
        for (int q = 1; q < kStreams; ++q) top = z[j * 4 + q][l] > top ? z[j * 4 + q][l] : top;
        float e[kStreams], sum = 0;
        for (int q = 0; q < kStreams; ++q) sum += e[q] = std::exp(z[j * 4 + q][l] - top);
        for (int q = 0; q < kStreams; ++q) soft[j * 4 + q][l] = e[q] / sum;
      }
    }
    steps = 2 * iterations - 1;
    for (int s = 0; s < steps; ++s) {
      for (int i = 0; i < kSquare; ++i)
        for (int l = 0; l < kLanes; ++l) c[s][i][l] = s == 0 ? soft[i][l] + eps : c[s - 1][i][l];
      s % 2 == 0 ? Normalize<false>(c[s], inverse[s], eps) : Normalize<true>(c[s], inverse[s], eps);
    }
  }

  // d: gradient of the result on entry, of the logits on return.
  void Backward(float (*d)[kLanes]) {
    for (int s = steps - 1; s >= 0; --s)
      s % 2 == 0 ? NormalizeGrad<false>(c[s], inverse[s], d)
                 : NormalizeGrad<true>(c[s], inverse[s], d);
    for (int j = 0; j < kStreams; ++j) {
      for (int l = 0; l < kLanes; ++l) {
        float dot = 0;
        for (int q = 0; q < kStreams; ++q) dot += d[j * 4 + q][l] * soft[j * 4 + q][l];
        for (int q = 0; q < kStreams; ++q)
          d[j * 4 + q][l] = (d[j * 4 + q][l] - dot) * soft[j * 4 + q][l];
      }
    }
  }
};

}  // namespace

extern "C" {

// x [T,4,H], mix [T,24] = fn . x (not yet scaled by 1/rms), scale [3], base [24]
// -> y [T,H], post [T,4], comb [T,4,4]; keeps rho [T] and pre [T,4].
void hc_pre(int64_t tokens, int64_t hidden, int iterations, float eps, const float* x,
            const float* mix, const float* scale, const float* base, float* y, float* post,
            float* comb, float* rho, float* pre) {
  static thread_local Sinkhorn sinkhorn;
  const int64_t width = kStreams * hidden;
  for (int64_t t0 = 0; t0 < tokens; t0 += kLanes) {
    const int n = static_cast<int>(tokens - t0 < kLanes ? tokens - t0 : kLanes);
    float z[kSquare][kLanes] = {};
    for (int l = 0; l < n; ++l) {
      const int64_t t = t0 + l;
      const float* row = x + t * width;
      float sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += row[i] * row[i];
      rho[t] = 1.0f / std::sqrt(sum / static_cast<float>(width) + 1e-6f);
      for (int j = 0; j < kStreams; ++j) {
        pre[t * 4 + j] = Sigmoid(mix[t * kMix + j] * rho[t] * scale[0] + base[j]) + eps;
        post[t * 4 + j] = 2 * Sigmoid(mix[t * kMix + 4 + j] * rho[t] * scale[1] + base[4 + j]);
      }
      for (int i = 0; i < kSquare; ++i)
        z[i][l] = mix[t * kMix + 8 + i] * rho[t] * scale[2] + base[8 + i];
      const float *p = pre + t * 4, *x0 = row, *x1 = row + hidden, *x2 = row + 2 * hidden,
                  *x3 = row + 3 * hidden;
      for (int64_t i = 0; i < hidden; ++i)
        y[t * hidden + i] = p[0] * x0[i] + p[1] * x1[i] + p[2] * x2[i] + p[3] * x3[i];
    }
    sinkhorn.Forward(z, iterations, eps);
    for (int l = 0; l < n; ++l)
      for (int i = 0; i < kSquare; ++i)
        comb[(t0 + l) * kSquare + i] = sinkhorn.c[sinkhorn.steps - 1][i][l];
  }
}

// Gradients of hc_pre. dx [T,4,H] is written without the part through mix; dmix [T,24] is the
// gradient of the raw product fn . x; dscale [3] and dbase [24] are added to.
void hc_pre_grad(int64_t tokens, int64_t hidden, int iterations, float eps, const float* x,
                 const float* mix, const float* scale, const float* base, const float* rho,
                 const float* pre, const float* post, const float* dy, const float* dpost,
                 const float* dcomb, float* dx, float* dmix, float* dscale, float* dbase) {
  static thread_local Sinkhorn sinkhorn;
  const int64_t width = kStreams * hidden;
  for (int64_t t0 = 0; t0 < tokens; t0 += kLanes) {
    const int n = static_cast<int>(tokens - t0 < kLanes ? tokens - t0 : kLanes);
    float z[kSquare][kLanes] = {}, d[kSquare][kLanes] = {};
    for (int l = 0; l < n; ++l) {
      const int64_t t = t0 + l;
      for (int i = 0; i < kSquare; ++i) {
        z[i][l] = mix[t * kMix + 8 + i] * rho[t] * scale[2] + base[8 + i];
        d[i][l] = dcomb[t * kSquare + i];
      }
    }
    sinkhorn.Forward(z, iterations, eps);
    sinkhorn.Backward(d);
    for (int l = 0; l < n; ++l) {
      const int64_t t = t0 + l;
      const float *row = x + t * width, *g = dy + t * hidden;
      float dz[kMix];
      for (int j = 0; j < kStreams; ++j) {
        float dot = 0;
        for (int64_t i = 0; i < hidden; ++i) dot += g[i] * row[j * hidden + i];
        const float s = pre[t * 4 + j] - eps, q = 0.5f * post[t * 4 + j];
        dz[j] = dot * s * (1 - s);
        dz[4 + j] = dpost[t * 4 + j] * 2 * q * (1 - q);
      }
      for (int i = 0; i < kSquare; ++i) dz[8 + i] = d[i][l];
      float drho = 0;
      for (int i = 0; i < kMix; ++i) {
        const int part = i < 4 ? 0 : i < 8 ? 1 : 2;
        const float raw = mix[t * kMix + i];
        dscale[part] += dz[i] * raw * rho[t];
        dbase[i] += dz[i];
        drho += dz[i] * scale[part] * raw;
        dmix[t * kMix + i] = dz[i] * scale[part] * rho[t];
      }
      const float k = -drho * rho[t] * rho[t] * rho[t] / static_cast<float>(width);
      for (int j = 0; j < kStreams; ++j) {
        const float p = pre[t * 4 + j];
        const float* xj = row + j * hidden;
        float* out = dx + t * width + j * hidden;
        for (int64_t i = 0; i < hidden; ++i) out[i] = k * xj[i] + p * g[i];
      }
    }
  }
}

// out[t,q,:] = post[t,q] * o[t,:] + sum_j comb[t,j,q] * x[t,j,:]
void hc_post(int64_t tokens, int64_t hidden, const float* o, const float* x, const float* post,
             const float* comb, float* out) {
  for (int64_t t = 0; t < tokens; ++t) {
    const float *c = comb + t * kSquare, *row = x + t * kStreams * hidden, *ot = o + t * hidden;
    for (int q = 0; q < kStreams; ++q) {
      const float p = post[t * 4 + q], c0 = c[q], c1 = c[4 + q], c2 = c[8 + q], c3 = c[12 + q];
      float* y = out + (t * kStreams + q) * hidden;
      for (int64_t i = 0; i < hidden; ++i)
        y[i] = p * ot[i] + c0 * row[i] + c1 * row[hidden + i] + c2 * row[2 * hidden + i] +
               c3 * row[3 * hidden + i];
    }
  }
}

void hc_post_grad(int64_t tokens, int64_t hidden, const float* o, const float* x, const float* post,
                  const float* comb, const float* dout, float* d_o, float* dx, float* dpost,
                  float* dcomb) {
  for (int64_t t = 0; t < tokens; ++t) {
    const float *c = comb + t * kSquare, *ot = o + t * hidden, *p = post + t * 4;
    const float* g = dout + t * kStreams * hidden;
    const float *g0 = g, *g1 = g + hidden, *g2 = g + 2 * hidden, *g3 = g + 3 * hidden;
    float* dot = d_o + t * hidden;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int64_t i = 0; i < hidden; ++i) {
      dot[i] = p[0] * g0[i] + p[1] * g1[i] + p[2] * g2[i] + p[3] * g3[i];
      s0 += ot[i] * g0[i], s1 += ot[i] * g1[i], s2 += ot[i] * g2[i], s3 += ot[i] * g3[i];
    }
    float* dp = dpost + t * 4;
    dp[0] = s0, dp[1] = s1, dp[2] = s2, dp[3] = s3;
    for (int j = 0; j < kStreams; ++j) {
      const float* xj = x + (t * kStreams + j) * hidden;
      float* dxj = dx + (t * kStreams + j) * hidden;
      const float a = c[j * 4], b = c[j * 4 + 1], e = c[j * 4 + 2], f = c[j * 4 + 3];
      s0 = s1 = s2 = s3 = 0;
      for (int64_t i = 0; i < hidden; ++i) {
        dxj[i] = a * g0[i] + b * g1[i] + e * g2[i] + f * g3[i];
        s0 += xj[i] * g0[i], s1 += xj[i] * g1[i], s2 += xj[i] * g2[i], s3 += xj[i] * g3[i];
      }
      float* dc = dcomb + t * kSquare + j * 4;
      dc[0] = s0, dc[1] = s1, dc[2] = s2, dc[3] = s3;
    }
  }
}

// RMS norm (if inverse is not null; weight may be null) and rotation of the last `rot` dims
// (interleaved pairs) of x [N,D]; row n stands at position[n / per]; table [positions, rot/2]
// cosines and sines; sign -1 rotates back. Keeps the reciprocal rms in inverse [N].
void norm_rope(int64_t rows, int64_t dim, int64_t rot, int64_t per, float sign, const float* x,
               const float* weight, const int64_t* position, const float* cosine, const float* sine,
               float* inverse, float* y) {
  for (int64_t n = 0; n < rows; ++n) {
    const float* in = x + n * dim;
    float* out = y + n * dim;
    float r = 1;
    if (inverse) {
      float sum = 0;
      for (int64_t i = 0; i < dim; ++i) sum += in[i] * in[i];
      r = inverse[n] = 1.0f / std::sqrt(sum / static_cast<float>(dim) + 1e-6f);
    }
    for (int64_t i = 0; i < dim; ++i) out[i] = in[i] * r * (weight ? weight[i] : 1.0f);
    if (rot == 0) continue;
    const float *c = cosine + position[n / per] * (rot / 2),
                *s = sine + position[n / per] * (rot / 2);
    float* pair = out + dim - rot;
    for (int64_t i = 0; i < rot / 2; ++i) {
      const float a = pair[2 * i], b = pair[2 * i + 1], sn = sign * s[i];
      pair[2 * i] = a * c[i] - b * sn;
      pair[2 * i + 1] = a * sn + b * c[i];
    }
  }
}

// Gradients of norm_rope; dweight [D] is added to (may be null).
void norm_rope_grad(int64_t rows, int64_t dim, int64_t rot, int64_t per, float sign, const float* x,
                    const float* weight, const int64_t* position, const float* cosine,
                    const float* sine, const float* inverse, const float* dy, float* dx,
                    float* dweight) {
  float g[1024];
  for (int64_t n = 0; n < rows; ++n) {
    const float* in = x + n * dim;
    float* out = dx + n * dim;
    std::memcpy(g, dy + n * dim, static_cast<size_t>(dim) * sizeof(float));
    if (rot) {
      const float *c = cosine + position[n / per] * (rot / 2),
                  *s = sine + position[n / per] * (rot / 2);
      float* pair = g + dim - rot;
      for (int64_t i = 0; i < rot / 2; ++i) {
        const float a = pair[2 * i], b = pair[2 * i + 1], sn = -sign * s[i];
        pair[2 * i] = a * c[i] - b * sn;
        pair[2 * i + 1] = a * sn + b * c[i];
      }
    }
    if (!inverse) {
      std::memcpy(out, g, static_cast<size_t>(dim) * sizeof(float));
      continue;
    }
    const float r = inverse[n];
    float dot = 0;
    if (weight) {
      for (int64_t i = 0; i < dim; ++i) {
        dweight[i] += g[i] * in[i] * r;
        g[i] *= weight[i];
      }
    }
    for (int64_t i = 0; i < dim; ++i) dot += g[i] * in[i];
    const float k = dot * r * r * r / static_cast<float>(dim);
    for (int64_t i = 0; i < dim; ++i) out[i] = r * g[i] - k * in[i];
  }
}

// In place: scores [C,heads,Q,K] -> attention weights of softmax(scores * scale) with one extra
// column sink[head]; mask [C,Q,K] is 1 where a key may be seen.
void sink_softmax(int64_t chunks, int64_t heads, int64_t queries, int64_t keys, float scale,
                  const uint8_t* mask, const float* sink, float* scores) {
  for (int64_t c = 0; c < chunks; ++c) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t q = 0; q < queries; ++q) {
        float* s = scores + ((c * heads + h) * queries + q) * keys;
        const uint8_t* m = mask + (c * queries + q) * keys;
        float top = sink[h];
        for (int64_t k = 0; k < keys; ++k) {
          s[k] = m[k] ? s[k] * scale : -1e30f;
          top = s[k] > top ? s[k] : top;
        }
        float sum = std::exp(sink[h] - top);
        for (int64_t k = 0; k < keys; ++k) sum += s[k] = std::exp(s[k] - top);
        const float r = 1.0f / sum;
        for (int64_t k = 0; k < keys; ++k) s[k] *= r;
      }
    }
  }
}

// In place: gradient of the weights `dp` -> gradient of the raw scores; dsink [heads] is added to.
void sink_softmax_grad(int64_t chunks, int64_t heads, int64_t queries, int64_t keys, float scale,
                       const float* p, float* dp, float* dsink) {
  for (int64_t c = 0; c < chunks; ++c) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t q = 0; q < queries; ++q) {
        const int64_t row = ((c * heads + h) * queries + q) * keys;
        const float* w = p + row;
        float* d = dp + row;
        float dot = 0, sum = 0;
        for (int64_t k = 0; k < keys; ++k) dot += w[k] * d[k], sum += w[k];
        for (int64_t k = 0; k < keys; ++k) d[k] = w[k] * (d[k] - dot) * scale;
        dsink[h] -= (1 - sum) * dot;
      }
    }
  }
}

// h[n,f] = silu(min(a, limit)) * clamp(b, -limit, limit) * weight[n], a = ab[n,f], b = ab[n,F+f]
void swiglu(int64_t rows, int64_t width, float limit, const float* ab, const float* weight,
            float* h) {
  for (int64_t n = 0; n < rows; ++n) {
    const float *a = ab + n * 2 * width, *b = a + width, w = weight ? weight[n] : 1.0f;
    for (int64_t i = 0; i < width; ++i) {
      const float u = a[i] < limit ? a[i] : limit;
      const float v = b[i] < -limit ? -limit : b[i] > limit ? limit : b[i];
      h[n * width + i] = u * Sigmoid(u) * v * w;
    }
  }
}

void swiglu_grad(int64_t rows, int64_t width, float limit, const float* ab, const float* weight,
                 const float* dh, float* dab, float* dweight) {
  for (int64_t n = 0; n < rows; ++n) {
    const float *a = ab + n * 2 * width, *b = a + width, w = weight ? weight[n] : 1.0f;
    float *da = dab + n * 2 * width, *db = da + width, total = 0;
    for (int64_t i = 0; i < width; ++i) {
      const float u = a[i] < limit ? a[i] : limit;
      const float v = b[i] < -limit ? -limit : b[i] > limit ? limit : b[i];
      const float s = Sigmoid(u), g = dh[n * width + i];
      total += g * u * s * v;
      da[i] = a[i] < limit ? g * w * v * s * (1 + u * (1 - s)) : 0.0f;
      db[i] = b[i] > -limit && b[i] < limit ? g * w * u * s : 0.0f;
    }
    if (dweight) dweight[n] = total;
  }
}

// Pooling of compressed entries. Row e of index [E,slots] names the tokens of an entry (-1: none);
// u, g [T,parts*D]; ape [ratio,parts*D] is added to g by slot % ratio. With parts = 2 the first
// half of the slots uses the first D channels. out[e,d] = sum over slots of softmax(g + ape) * u;
// keeps the weights p [E,slots,D].
void pool(int64_t entries, int64_t slots, int64_t parts, int64_t dim, const int64_t* index,
          const float* u, const float* g, const float* ape, float* p, float* out) {
  const int64_t ratio = slots / parts, width = parts * dim;
  for (int64_t e = 0; e < entries; ++e) {
    float top[1024], sum[1024];
    for (int64_t d = 0; d < dim; ++d) top[d] = -1e30f, sum[d] = 0;
    float *w = p + e * slots * dim, *o = out + e * dim;
    for (int64_t s = 0; s < slots; ++s) {
      const int64_t t = index[e * slots + s], at = s / ratio * dim;
      for (int64_t d = 0; d < dim; ++d) {
        const float v = t < 0 ? -1e30f : g[t * width + at + d] + ape[s % ratio * width + at + d];
        w[s * dim + d] = v;
        top[d] = v > top[d] ? v : top[d];
      }
    }
    for (int64_t s = 0; s < slots; ++s)
      for (int64_t d = 0; d < dim; ++d)
        sum[d] += w[s * dim + d] = std::exp(w[s * dim + d] - top[d]);
    for (int64_t d = 0; d < dim; ++d) o[d] = 0, sum[d] = 1.0f / sum[d];
    for (int64_t s = 0; s < slots; ++s) {
      const int64_t t = index[e * slots + s], at = s / ratio * dim;
      for (int64_t d = 0; d < dim; ++d) {
        w[s * dim + d] *= sum[d];
        if (t >= 0) o[d] += w[s * dim + d] * u[t * width + at + d];
      }
    }
  }
}

// du, dg [T,parts*D] and dape are added to.
void pool_grad(int64_t entries, int64_t slots, int64_t parts, int64_t dim, const int64_t* index,
               const float* u, const float* p, const float* out, const float* dout, float* du,
               float* dg, float* dape) {
  const int64_t ratio = slots / parts, width = parts * dim;
  for (int64_t e = 0; e < entries; ++e) {
    for (int64_t s = 0; s < slots; ++s) {
      const int64_t t = index[e * slots + s], at = s / ratio * dim;
      if (t < 0) continue;
      const float *w = p + (e * slots + s) * dim, *o = out + e * dim, *d_out = dout + e * dim;
      const float* ut = u + t * width + at;
      float *a = du + t * width + at, *b = dg + t * width + at, *c = dape + s % ratio * width + at;
      for (int64_t d = 0; d < dim; ++d) {
        const float wd = w[d] * d_out[d], gd = wd * (ut[d] - o[d]);
        a[d] += wd, b[d] += gd, c[d] += gd;
      }
    }
  }
}

// Momentum of Muon for `count` matrices of `size` values: v = momentum * v + g, and in `out` (bf16)
// the matrices u = g + momentum * v, each divided by its Frobenius norm.
void muon_direction(int64_t count, int64_t size, float momentum, const float* g, float* v,
                    uint16_t* out) {
  for (int64_t m = 0; m < count; ++m, g += size, v += size, out += size) {
    float sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      v[i] = momentum * v[i] + g[i];
      const float u = g[i] + momentum * v[i];
      sum += u * u;
    }
    const float scale = 1.0f / (std::sqrt(sum) + 1e-7f);
    for (int64_t i = 0; i < size; ++i) {
      const float u = (g[i] + momentum * v[i]) * scale;
      uint32_t bits;
      std::memcpy(&bits, &u, sizeof(bits));
      out[i] = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
  }
}

}  // extern "C"
