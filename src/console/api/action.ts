import { useState } from "preact/hooks"

interface State {
  readonly isBusy: boolean
  readonly isDone?: boolean
  readonly cause?: unknown
}

/** What a button does, and its outcome. */
export const useAction = () => {
  const [state, setState] = useState<State>({ isBusy: false })
  const run = async (action: () => Promise<unknown>): Promise<void> => {
    setState({ isBusy: true })
    try {
      await action()
      setState({ isBusy: false, isDone: true })
    } catch (cause) {
      setState({ isBusy: false, cause })
    }
  }
  return { ...state, run, forget: () => setState({ isBusy: false }) }
}
