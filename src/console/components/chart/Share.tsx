interface Props {
  /** The exact value, as text. */
  readonly name: string
  /** From 0 to 1, used only for the length. */
  readonly share: number
}

/** A bar that shows a share of a whole. */
export const Share = ({ name, share }: Props) => (
  <svg class="share" role="img" aria-label={name} viewBox="0 0 100 4" preserveAspectRatio="none">
    <rect class="bar-room" width="100" height="4" />
    <rect class="bar-part" width={Math.min(100, Math.max(0, share * 100))} height="4" />
  </svg>
)
