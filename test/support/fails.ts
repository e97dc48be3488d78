/** The error of a call that is expected to fail. */
export const fails = (call: PromiseLike<unknown>): Promise<Error> =>
  Promise.resolve(call).then(
    () => {
      throw new Error("expected a failure")
    },
    (error: Error) => error
  )
