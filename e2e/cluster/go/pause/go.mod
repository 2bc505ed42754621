module headwater.local/pause

go 1.26
