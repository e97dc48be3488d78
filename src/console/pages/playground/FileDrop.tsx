import { Icon } from "../../components/Icon.tsx"
import { playgroundTexts } from "../../texts/en/playground.ts"
import type { Rules } from "./mediaFile.ts"
import { useFileDrop } from "./useFileDrop.ts"

const words = playgroundTexts.media

interface Props {
  /** The label of the field, for screen readers. */
  readonly label: string
  readonly rules: Rules
  readonly onFile: (file: File) => void
}

/** Accepts a file that is dropped or chosen. */
export const FileDrop = ({ label, onFile, rules }: Props) => {
  const take = ([file]: ReadonlyArray<File>) => {
    if (file !== undefined) onFile(file)
  }
  const { handlers, isOver } = useFileDrop(take)
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- a keyboard has the input within
    <label class={isOver ? "drop over" : "drop"} {...handlers}>
      <Icon name="upload" />
      <span>
        {words.drop}
        <span class="hidden"> {words.file(label)}</span>
      </span>
      <input
        type="file"
        class="hidden"
        accept={rules.media_types.join(",")}
        onChange={({ currentTarget }) => {
          take([...(currentTarget.files ?? [])])
          // Allows choosing the same file again
          currentTarget.value = ""
        }}
      />
    </label>
  )
}
