import { useState } from "preact/hooks"
import { texts } from "../texts/en.ts"

interface Props {
  readonly text: string
  /** What is copied, for those who do not see where the button stands. */
  readonly what: string
  readonly label?: string
}

const shownMillis = 2000

export const CopyButton = ({ label = texts.copy, text, what }: Props) => {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await copyText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), shownMillis)
  }
  return (
    <button
      type="button"
      class="small"
      aria-label={label === texts.copy ? texts.copyWhat(what) : undefined}
      onClick={() => void copy()}
    >
      <span aria-live="polite">{isCopied ? texts.copied : label}</span>
    </button>
  )
}

/** Without https a browser has no clipboard for scripts, except by a selection. */
const copyText = async (text: string): Promise<void> => {
  if (globalThis.isSecureContext) {
    await navigator.clipboard.writeText(text)
    return
  }
  const field = document.createElement("textarea")
  field.value = text
  document.body.append(field)
  field.select()
  document.execCommand("copy")
  field.remove()
}
