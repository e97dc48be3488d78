import { useState } from "preact/hooks"
import { isShown, mediaPath } from "../../api/address.ts"
import type { Schemas } from "../../api/schema.ts"
import { Icon } from "../Icon.tsx"

type Of = Schemas["TaskListItem"]["preview"]

/** The first result beside the title of its task; a video is an icon, so that a list loads none. */
export const Thumbnail = ({ of }: { readonly of: Of }) => {
  const [isGone, setGone] = useState(false)
  if (of === undefined || isGone || !isShown(of.url)) return null
  if (of.kind === "videos") {
    return (
      <span class="thumbnail">
        <Icon name="play" />
      </span>
    )
  }
  return (
    <img
      class="thumbnail"
      src={mediaPath(of.url)}
      alt=""
      loading="lazy"
      decoding="async"
      onError={() => setGone(true)}
    />
  )
}

/** The first result as large as its place; the task names it. */
export const PreviewMedia = ({ of }: { readonly of: NonNullable<Of> }) =>
  of.kind === "videos" ? (
    <video src={mediaPath(of.url)} preload="metadata" muted />
  ) : (
    <img src={mediaPath(of.url)} alt="" loading="lazy" decoding="async" />
  )
