import { Icon } from "../../components/Icon.tsx"
import { playgroundTexts } from "../../texts/en/playground.ts"
import type { Rules } from "./mediaFile.ts"
import { useFiles } from "./useFiles.ts"

const words = playgroundTexts.media

interface Props {
  /** The label of the field, for screen readers. */
  readonly label: string
  readonly rules: Rules
  readonly onFile: (file: File) => Promise<void>
}

/** Accepts a file that is dropped or chosen. */
export const FileDrop = ({ label, onFile, rules }: Props) => {
  const { handlers, input, isOver } = useFiles(async ([file]) => {
    if (file !== undefined) await onFile(file)
  })
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a keyboard has the input within
    <label class={isOver ? "drop over" : "drop"} {...handlers}>
      <Icon name="upload" />
      <span>
        {words.drop}
        <span class="hidden"> {words.file(label)}</span>
      </span>
      <input {...input} accept={rules.media_types.join(",")} />
    </label>
  )
}
