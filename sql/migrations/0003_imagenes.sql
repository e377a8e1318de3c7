-- The hosted image's name, for those that the service uploaded itself: only they are removed.
alter table usuario add column "imagenPublicId" text;
