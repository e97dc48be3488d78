let waits = 0

/** The number of unfinished waits of `afterMillis`. Tests whose clock does not advance await them. */
export const realWaits = (): number => waits

/**
 * A short wait in real milliseconds, even under a test clock, because it only saves work. The returned function
 * cancels it.
 */
export const afterMillis = (millis: number, then: () => void): (() => void) => {
  let isWaiting = true
  const end = () => {
    if (!isWaiting) return
    isWaiting = false
    waits -= 1
    clearTimeout(timer)
  }
  waits += 1
  const timer = setTimeout(() => {
    end()
    then()
  }, millis)
  return end
}
