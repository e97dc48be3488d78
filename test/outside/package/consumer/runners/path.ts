export const path = "/vendors/alibaba/v1/text-to-image-max/generation"
