// The index of rate-limiter-flexible loads limiters for a dozen databases, which takes 16 ms of CPU time and 6 MB. The library has types
// only for its index.

declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  export { RateLimiterMemory as default } from 'rate-limiter-flexible';
}
declare module 'rate-limiter-flexible/lib/RateLimiterRedis.js' {
  export { RateLimiterRedis as default } from 'rate-limiter-flexible';
}
declare module 'rate-limiter-flexible/lib/RateLimiterRes.js' {
  export { RateLimiterRes as default } from 'rate-limiter-flexible';
}
declare module 'rate-limiter-flexible/lib/RLWrapperTimeouts.js' {
  export { RLWrapperTimeouts as default } from 'rate-limiter-flexible';
}
