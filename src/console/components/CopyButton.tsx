import { useState } from "preact/hooks"
import { texts } from "../texts/en.ts"
import { Icon } from "./Icon.tsx"

interface Props {
  readonly text: string
  /** The name of what is copied, for screen readers. */
  readonly what: string
  readonly label?: string
}

const shownMillis = 2000

type State = "ready" | "copied" | "refused"

export const CopyButton = ({ label = texts.copy, text, what }: Props) => {
  const [state, setState] = useState<State>("ready")
  const copy = async (button: HTMLElement) => {
    setState((await copyText(text, button)) ? "copied" : "refused")
    setTimeout(() => setState("ready"), shownMillis)
  }
  const isPicture = label === texts.copy
  const shown = { ready: isPicture ? "" : label, copied: texts.copied, refused: texts.notCopied }
  return (
    <button
      type="button"
      class={isPicture ? "small quiet" : undefined}
      title={isPicture ? texts.copyWhat(what) : undefined}
      aria-label={isPicture && state === "ready" ? texts.copyWhat(what) : undefined}
      onClick={({ currentTarget }) => void copy(currentTarget)}
    >
      {isPicture && state !== "refused" && <Icon name={state === "copied" ? "check" : "copy"} />}
      <span aria-live="polite" class={isPicture && state === "copied" ? "hidden" : undefined}>
        {shown[state]}
      </span>
    </button>
  )
}

/** Without https, scripts have no clipboard, and a browser may refuse it. Then the text is copied by selecting it. */
const copyText = async (text: string, button: HTMLElement): Promise<boolean> => {
  if (globalThis.isSecureContext) {
    const isWritten = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false
    )
    if (isWritten) return true
  }
  const field = document.createElement("textarea")
  field.value = text
  // Next to the button, because elements outside an open dialog cannot be selected
  button.after(field)
  field.select()
  const isCopied = document.execCommand("copy")
  field.remove()
  button.focus()
  return isCopied
}
