export const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

/**
 * Polls in real time at growing intervals until the result is not `false`. Throws after the time limit. The default
 * limit is not an assertion; it only ends hanging tests.
 */
export const until = async <A>(
  ask: () => A | false | undefined | Promise<A | false | undefined>,
  options: { readonly millis?: number; readonly what?: string } = {}
): Promise<A> => {
  const { millis = 60_000, what = "it" } = options
  const began = performance.now()
  for (let passed = 0; passed < millis; passed = performance.now() - began) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
    await pause(Math.min(250, Math.max(5, passed / 10)))
  }
  throw new Error(`timed out after ${millis} ms while waiting for ${what}`)
}
