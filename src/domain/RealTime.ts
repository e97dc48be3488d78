let waits = 0

/** Waits of `afterMillis` that have not ended. A test whose clock stands waits for them. */
export const realWaits = (): number => waits

/**
 * A short wait in real time, whatever the clock of a test says: it only spares work. Milliseconds. The
 * function that it returns ends the wait without the call.
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
